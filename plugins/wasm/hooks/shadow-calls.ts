/** Calls of shadow versions: their results are compared with those of the current version and counted. */
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { LoadedModule, PhaseResult } from '../threads/guest-task.ts'
import { applyEdits } from './header-edits.ts'
import type { PhaseBatcher } from './phase-batcher.ts'
import type { PhaseMessage } from './phase-message.ts'

export class ShadowCalls {
  readonly #batcher: PhaseBatcher
  readonly #statistics: CallStatistics

  constructor(batcher: PhaseBatcher, statistics: CallStatistics) {
    this.#batcher = batcher
    this.#statistics = statistics
  }

  /** @param place of the version that counts, among the results. Never rejects. */
  async compare(
    shadow: LoadedModule,
    message: PhaseMessage,
    results: readonly PhaseResult[],
    place: number,
  ): Promise<void> {
    if (this.#statistics.isSuspended(shadow)) return
    const { body, item } = seenAt(message, results, place, shadow)
    const ended = await this.#batcher.run({ modules: [shadow], item, body, origin: null })
    const call = { module: shadow, point: message.point, requestId: message.input.request.id }
    if (ended.kind === 'timeout' || ended.kind === 'crashed') this.#statistics.lost(call, ended.kind)
    if (ended.kind !== 'results') return
    const [result] = ended.results
    this.#statistics.called(call, result, result.action)
    if (result.failure === null) this.#statistics.compared(call, isSame(result, results[place]))
  }
}

/** What the module at that place was shown: the message as those before it left it. */
function seenAt(
  { origin: _origin, ...message }: PhaseMessage,
  results: readonly PhaseResult[],
  place: number,
  { uuid, shadowOf }: LoadedModule,
) {
  let { requestHeaders, responseHeaders, body, input } = message
  for (const { edits, status, body: replaced } of results.slice(0, place)) {
    if (message.point === 'OnRequest') requestHeaders &&= applyEdits(requestHeaders, edits)
    else responseHeaders &&= applyEdits(responseHeaders, edits)
    if (status !== null && input.response !== undefined)
      input = { ...input, response: { ...input.response, status } }
    if (replaced !== null) body = replaced
  }
  // The request may be over, and its memory another's, before the call is made.
  const own = body === null ? null : Uint8Array.from(body)
  const { point } = message
  const fetched = message.fetched?.uuid === shadowOf ? { ...message.fetched, uuid } : null
  return { body: own, item: { point, input, requestHeaders, responseHeaders, fetched } }
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
