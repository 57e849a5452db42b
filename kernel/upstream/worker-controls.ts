/** Control operations of workers by connection mode or URL, for plugins. */
import type { ModeControl } from '../contracts/mode-control.ts'
import type { Upstream } from '../contracts/upstream.ts'
import type { WorkerControl, WorkerControls } from '../contracts/worker-control.ts'
import { upstreamErrors } from './upstream-errors.ts'

export function workerControls(
  upstream: Pick<Upstream, 'controlOf' | 'controlFor' | 'controls'>,
): WorkerControls {
  return {
    controlOf: (mode) => workerControlOf(upstream.controlOf(mode)),
    controlFor: (url) => workerControlOf(upstream.controlFor(url)),
    controls: () => upstream.controls().filter(isWorkerControl),
    call: async (worker, call) => {
      const control = workerControlOf(upstream.controlFor(worker.url))
      if (control?.call !== undefined) return control.call(worker, call)
      const mode = control?.mode ?? worker.url.slice(0, Math.max(0, worker.url.indexOf('://')))
      throw upstreamErrors.unsupported_connection_mode(mode)
    },
  }
}

/** Null for a control that only writes credentials and cannot register workers. */
function workerControlOf(control: ModeControl | null): WorkerControl | null {
  return control !== null && isWorkerControl(control) ? control : null
}

function isWorkerControl(control: ModeControl): control is WorkerControl {
  return 'describe' in control
}
