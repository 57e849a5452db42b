/** Transports, pair strategies and control operations of one thread, by connection mode. */

import type { PairStrategy } from '../contracts/pair.ts'
import type { Transport } from '../contracts/transport.ts'
import type { Upstream } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { ModeControl, WorkerControl, WorkerControls } from '../contracts/worker-control.ts'
import { upstreamErrors } from './upstream-errors.ts'

export class Transports {
  readonly #byMode = new Map<string, Transport>()
  readonly #pairsByMode = new Map<string, PairStrategy>()
  readonly #controlByMode = new Map<string, ModeControl>()

  /** @throws Error if another plugin has registered the mode */
  add(transport: Transport): void {
    addOnce(this.#byMode, transport, 'a transport')
  }

  /** @throws as `add` */
  addPairs(strategy: PairStrategy): void {
    addOnce(this.#pairsByMode, strategy, 'pairs')
  }

  /** @throws Error if another plugin has registered the mode or one of its schemes */
  addControl(control: ModeControl): void {
    const others = this.controls()
    addOnce(this.#controlByMode, control, 'control operations')
    for (const scheme of control.schemes) {
      const other = others.find(({ schemes }) => schemes.includes(scheme))
      if (other !== undefined)
        throw new Error(
          `connection modes ${other.mode} and ${control.mode} both register the scheme ${scheme}://`,
        )
    }
  }

  controlOf(mode: string): ModeControl | null {
    return this.#controlByMode.get(mode) ?? null
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

function addOnce<T extends { readonly mode: string }>(byMode: Map<string, T>, added: T, what: string): void {
  if (byMode.has(added.mode))
    throw new Error(`two plugins register ${what} for connection mode ${added.mode}`)
  byMode.set(added.mode, added)
}

/** Control operations of workers by connection mode or URL, for plugins. */
export function workerControls(upstream: Pick<Upstream, 'controls'>): WorkerControls {
  // One that only writes credentials cannot register workers.
  const controls = () => upstream.controls().filter((control) => 'describe' in control) as WorkerControl[]
  const controlFor = (url: string) => {
    const end = url.indexOf('://')
    return (
      (end < 0 ? undefined : controls().find(({ schemes }) => schemes.includes(url.slice(0, end)))) ?? null
    )
  }
  return {
    controlOf: (mode) => controls().find((control) => control.mode === mode) ?? null,
    controlFor,
    controls,
    call: async (worker, call) => {
      const control = controlFor(worker.url)
      if (control?.call !== undefined) return control.call(worker, call)
      const mode = control?.mode ?? worker.url.slice(0, Math.max(0, worker.url.indexOf('://')))
      throw upstreamErrors.unsupported_connection_mode(mode)
    },
  }
}
