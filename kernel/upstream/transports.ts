/** How workers are reached on one thread: by connection mode, their transports, and what runs pairs of them. */
import type { PairStrategy } from '../contracts/pair.ts'
import type { Transport } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { upstreamErrors } from './upstream-errors.ts'

export class Transports {
  readonly #byMode = new Map<string, Transport>()
  readonly #pairsByMode = new Map<string, PairStrategy>()

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
}
