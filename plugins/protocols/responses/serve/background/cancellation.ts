/** Cancels background responses, whoever works on them. */
import type { HistoryService, ResponseRecord } from '#kernel'
import { defineTopic, type Topic } from '#kernel'
import { type LiveResponses, liveKey } from '../stored/follow-response.ts'

export const CancelTopic = defineTopic<null>('responses-cancel')

/** Time for who works on it to keep what there is of it. */
const LAST_WORDS_MS = 1_000

export class Cancellation {
  readonly #history: HistoryService | undefined
  readonly #live: LiveResponses
  readonly #wishes: Topic<null>

  constructor(history: HistoryService | undefined, live: LiveResponses, wishes: Topic<null>) {
    this.#history = history
    this.#live = live
    this.#wishes = wishes
  }

  /** @returns how it ended, which may be by itself; undefined when it is gone */
  async cancel(tenant: string, record: ResponseRecord): Promise<ResponseRecord | undefined> {
    const { responses } = this.#history as HistoryService
    await this.#askWorker(liveKey(tenant, record.id))
    const now = await responses.get(tenant, record.id)
    if (now === undefined || (now.status !== 'queued' && now.status !== 'in_progress')) return now
    await responses.finish(tenant, {
      ...now,
      status: 'cancelled',
      reply: { ...now.reply, status: 'cancelled', usage: now.reply.usage ?? noUsage },
    })
    return await responses.get(tenant, record.id)
  }

  /** Waits until it has ended its work; at once where nobody in this gateway works on it. */
  async #askWorker(key: string): Promise<void> {
    const over = Promise.withResolvers<void>()
    const subscription = this.#live.subscribe(key, {
      onEvent: ({ isOver }) => {
        if (isOver) over.resolve()
      },
      onLost: () => over.resolve(),
    })
    const timer = setTimeout(over.resolve, LAST_WORDS_MS)
    try {
      await subscription.ready
      if (this.#wishes.publish(key, null)) await over.promise
    } finally {
      clearTimeout(timer)
      subscription.close()
    }
  }

  /** @param stop called when somebody wants it to end. @returns stops listening */
  listen(tenant: string, id: string, stop: () => void): () => void {
    const subscription = this.#wishes.subscribe(liveKey(tenant, id), { onEvent: stop, onLost: nothing })
    return () => subscription.close()
  }
}

/** Where events were lost, the store says what became of it. */
function nothing(): void {}

const noUsage = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
}
