/** Control of workers by connection mode or URL, as plugins use it. */
import type { ModeControl } from '../contracts/mode-control.ts'
import type { Upstream } from '../contracts/upstream.ts'
import type { WorkerControl, WorkerControls } from '../contracts/worker-control.ts'
import { upstreamErrors } from './upstream-errors.ts'

export function workerControls(
  upstream: Pick<Upstream, 'controlOf' | 'controlFor' | 'controls'>,
): WorkerControls {
  return {
    controlOf: (mode) => wholeOf(upstream.controlOf(mode)),
    controlFor: (url) => wholeOf(upstream.controlFor(url)),
    controls: () => upstream.controls().filter(isWhole),
    call: async (worker, call) => {
      const control = wholeOf(upstream.controlFor(worker.url))
      if (control?.call !== undefined) return control.call(worker, call)
      const mode = control?.mode ?? worker.url.slice(0, Math.max(0, worker.url.indexOf('://')))
      throw upstreamErrors.unsupported_connection_mode(mode)
    },
  }
}

/** One that only answers the kernel looks after no workers: nobody could register any. */
function wholeOf(control: ModeControl | null): WorkerControl | null {
  return control !== null && isWhole(control) ? control : null
}

function isWhole(control: ModeControl): control is WorkerControl {
  return 'describe' in control
}
