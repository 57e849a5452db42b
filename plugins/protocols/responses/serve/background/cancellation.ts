/** Cancels background responses, on whichever thread they run. */
import type { HistoryService, ResponseRecord, Topic } from '#kernel'
import { toWireUsage } from '../output/response-encoder.ts'
import { isRunning } from '../run/response-record.ts'
import { type LiveResponses, liveKey, type Signals, type StopRequest } from './topics.ts'

/** Time for the thread that runs it to store its output. */
const STOP_TIMEOUT_MS = 1_000

export class Cancellation {
  readonly #history: HistoryService | undefined
  readonly #live: LiveResponses
  readonly #requests: Topic<StopRequest>
  readonly #signals: Signals

  constructor(
    history: HistoryService | undefined,
    live: LiveResponses,
    requests: Topic<StopRequest>,
    signals: Signals,
  ) {
    this.#history = history
    this.#live = live
    this.#requests = requests
    this.#signals = signals
  }

  /** @returns the ended response, which may have completed meanwhile; undefined if it was deleted */
  async cancel(tenant: string, record: ResponseRecord): Promise<ResponseRecord | undefined> {
    const { responses } = this.#history as HistoryService
    const key = liveKey(tenant, record.id)
    await this.#askWorker(key)
    const now = await responses.get(tenant, record.id)
    if (now === undefined || !isRunning(now)) return now
    await responses.finish(tenant, {
      ...now,
      status: 'cancelled',
      reply: { ...now.reply, status: 'cancelled', usage: now.reply.usage ?? toWireUsage(null) },
    })
    this.#signals.publish('ended', key)
    return await responses.get(tenant, record.id)
  }

  /** Waits until the thread that runs it has stopped; returns at once if no thread of this gateway does. */
  async #askWorker(key: string): Promise<void> {
    const over = Promise.withResolvers<void>()
    const unsubscribe = this.#live.subscribe(key, ({ isOver }) => {
      if (isOver) over.resolve()
    })
    const timer = setTimeout(over.resolve, STOP_TIMEOUT_MS)
    try {
      if (this.#requests.publish(key, { isHint: false })) await over.promise
    } finally {
      clearTimeout(timer)
      unsubscribe()
    }
  }

  /** @param stop called when it is to end. @returns stops listening */
  listen(tenant: string, id: string, stop: (request: StopRequest) => void): () => void {
    return this.#requests.subscribe(liveKey(tenant, id), stop)
  }
}
