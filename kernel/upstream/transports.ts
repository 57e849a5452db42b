/** How workers are reached on one thread: by connection mode, their transports, and what runs pairs of them. */

import type { ModeControl } from '../contracts/mode-control.ts'
import type { PairStrategy } from '../contracts/pair.ts'
import type { Transport } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { upstreamErrors } from './upstream-errors.ts'

export class Transports {
  readonly #byMode = new Map<string, Transport>()
  readonly #pairsByMode = new Map<string, PairStrategy>()
  readonly #controlByMode = new Map<string, ModeControl>()
  readonly #controlByScheme = new Map<string, ModeControl>()

  /** @throws Error when the mode is taken: a bug of a plugin, told at boot */
  add(transport: Transport): void {
    if (this.#byMode.has(transport.mode))
      throw new Error(`two plugins reach workers of connection mode ${transport.mode}`)
    this.#byMode.set(transport.mode, transport)
  }

  addPairs(strategy: PairStrategy): void {
    if (this.#pairsByMode.has(strategy.mode))
      throw new Error(`two plugins run pairs of connection mode ${strategy.mode}`)
    this.#pairsByMode.set(strategy.mode, strategy)
  }

  /** @throws Error when the mode or one of its schemes is taken */
  addControl(control: ModeControl): void {
    if (this.#controlByMode.has(control.mode))
      throw new Error(`two plugins look after workers of connection mode ${control.mode}`)
    this.#controlByMode.set(control.mode, control)
    for (const scheme of control.schemes) {
      const other = this.#controlByScheme.get(scheme)
      if (other !== undefined)
        throw new Error(`connection modes ${other.mode} and ${control.mode} both want ${scheme}:// workers`)
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
