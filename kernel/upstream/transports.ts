/** Transports, pair strategies and control operations of one thread, by connection mode. */
import type { ModeControl } from '../contracts/mode-control.ts'
import type { PairStrategy } from '../contracts/pair.ts'
import type { Transport } from '../contracts/transport.ts'
import type { Upstream } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { WorkerControl, WorkerControls } from '../contracts/worker-control.ts'
import { upstreamErrors } from './upstream-errors.ts'

export class Transports {
  readonly #byMode = new Map<string, Transport>()
  readonly #pairsByMode = new Map<string, PairStrategy>()
  readonly #controlByMode = new Map<string, ModeControl>()
  readonly #controlByScheme = new Map<string, ModeControl>()

  /** @throws Error if another plugin has registered the mode */
  add(transport: Transport): void {
    if (this.#byMode.has(transport.mode))
      throw new Error(`two plugins register a transport for connection mode ${transport.mode}`)
    this.#byMode.set(transport.mode, transport)
  }

  addPairs(strategy: PairStrategy): void {
    if (this.#pairsByMode.has(strategy.mode))
      throw new Error(`two plugins register pairs for connection mode ${strategy.mode}`)
    this.#pairsByMode.set(strategy.mode, strategy)
  }

  /** @throws Error if another plugin has registered the mode or one of its schemes */
  addControl(control: ModeControl): void {
    if (this.#controlByMode.has(control.mode))
      throw new Error(`two plugins register control operations for connection mode ${control.mode}`)
    this.#controlByMode.set(control.mode, control)
    for (const scheme of control.schemes) {
      const other = this.#controlByScheme.get(scheme)
      if (other !== undefined)
        throw new Error(
          `connection modes ${other.mode} and ${control.mode} both register the scheme ${scheme}://`,
        )
      this.#controlByScheme.set(scheme, control)
    }
  }

  controlOf(mode: string): ModeControl | null {
    return this.#controlByMode.get(mode) ?? null
  }

  controlFor(url: string): ModeControl | null {
    const end = url.indexOf('://')
    return end < 0 ? null : (this.#controlByScheme.get(url.slice(0, end)) ?? null)
  }

  controls(): readonly ModeControl[] {
    return [...this.#controlByMode.values()]
  }

  /** @throws unsupported_connection_mode (501) */
  of(worker: WorkerEntry): Transport {
    const transport = this.#byMode.get(worker.connectionMode)
    if (transport === undefined) throw upstreamErrors.unsupported_connection_mode(worker.connectionMode)
    return transport
  }

  /** @throws pairs_unsupported (501) */
  pairsOf(worker: WorkerEntry): PairStrategy {
    const strategy = this.#pairsByMode.get(worker.connectionMode)
    if (strategy === undefined) throw upstreamErrors.pairs_unsupported(worker.connectionMode)
    return strategy
  }

  all(): Iterable<Transport> {
    return this.#byMode.values()
  }

  close(): void {
    for (const transport of this.#byMode.values()) transport.close()
    for (const control of this.#controlByMode.values()) control.close?.()
  }
}

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
