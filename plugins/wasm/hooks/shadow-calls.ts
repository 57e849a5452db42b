/** Calls of shadow versions: their results are compared with those of the current version and counted. */
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { LoadedModule, PhaseResult } from '../threads/guest-task.ts'
import type { PhaseBatcher } from './phase-batcher.ts'
import { advanced, type PhaseMessage } from './phase-message.ts'

export class ShadowCalls {
  readonly #batcher: PhaseBatcher
  readonly #statistics: CallStatistics

  constructor(batcher: PhaseBatcher, statistics: CallStatistics) {
    this.#batcher = batcher
    this.#statistics = statistics
  }

  /** @param place index of the current version in the results. Never rejects. */
  async compare(
    shadow: LoadedModule,
    message: PhaseMessage,
    results: readonly PhaseResult[],
    place: number,
  ): Promise<void> {
    if (this.#statistics.isSuspended(shadow)) return
    const { uuid, shadowOf } = shadow
    const seen = results.slice(0, place).reduce(advanced, message)
    const { origin: _origin, body: given, fetched: before, ...rest } = seen
    // Copied, since the request may end before the call.
    const body = given && Uint8Array.from(given)
    const item = { ...rest, fetched: before?.uuid === shadowOf ? { ...before, uuid } : null }
    const ended = await this.#batcher.run({ modules: [shadow], item, body, origin: null })
    const call = { module: shadow, point: message.point, requestId: message.input.request.id }
    if (ended.kind === 'timeout' || ended.kind === 'crashed') this.#statistics.lost(call, ended.kind)
    if (ended.kind !== 'results') return
    const [result] = ended.results
    this.#statistics.called(call, result, result.action)
    if (result.failure === null) this.#statistics.compared(call, isSame(result, results[place]))
  }
}

function isSame(a: PhaseResult, b: PhaseResult): boolean {
  return (
    a.action === b.action &&
    a.status === b.status &&
    a.fetch?.method === b.fetch?.method &&
    a.fetch?.url === b.fetch?.url &&
    a.edits.length === b.edits.length &&
    a.edits.every((part, index) => part === b.edits[index]) &&
    Buffer.compare(a.body ?? new Uint8Array(0), b.body ?? new Uint8Array(0)) === 0
  )
}
