/**
 * The threads that render and encode. Only control opens them, so that the process has one set of threads for any number
 * of serving threads, which send their texts by command.
 */

import { type Host, type Metrics, messageOf, moduleFile, type TaskPool } from '#kernel'
import type { TokenizersConfig } from './config.ts'
import type {
  CacheReport,
  EncodeItem,
  EncodeResult,
  EncoderResult,
  EncoderTask,
  ItemResult,
} from './encoder-thread.ts'
import { tokenizerErrors } from './errors.ts'
import type { OpenSettings } from './open-tokenizer.ts'
import { openThreads, runWithin } from './pool-threads.ts'
import type { TokenizerImage } from './tokenizer-image.ts'

/** Maximum texts and characters of one message to a thread, so that one large text does not delay many. */
const MAX_BATCH_ITEMS = 64
const MAX_BATCH_LETTERS = 65_536

export interface EncoderPoolParts {
  readonly host: Host
  readonly config: TokenizersConfig
  /** Of all loaded tokenizers, by id. */
  readonly images: () => ReadonlyMap<string, TokenizerImage>
}

interface Waiting {
  readonly item: EncodeItem
  readonly resolve: (result: EncodeResult) => void
}

class EncoderPool {
  readonly #parts: EncoderPoolParts
  readonly #metrics: CacheMetrics
  /** Queues by tokenizer, next one first, so that no tokenizer delays the others. */
  readonly #waiting = new Map<string, Waiting[]>()
  #waitingCount = 0
  #pool: TaskPool | null = null
  #running = 0
  #isClosed = false

  constructor(parts: EncoderPoolParts, metrics: CacheMetrics) {
    this.#parts = parts
    this.#metrics = metrics
  }

  /** Results in order of the items. @throws tokenizer_busy (503) if the queue is full */
  encode(items: readonly EncodeItem[]): Promise<EncodeResult[]> {
    if (this.#isClosed || this.#waitingCount + items.length > this.#parts.config.queueLimit)
      throw tokenizerErrors.tokenizer_busy()
    const results = items.map((item) => {
      const { promise, resolve } = Promise.withResolvers<EncodeResult>()
      this.#queueOf(item.tokenizer).push({ item, resolve })
      return promise
    })
    this.#waitingCount += items.length
    this.#next()
    return Promise.all(results)
  }

  /** Fails queued items and stops the threads. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const queue of this.#waiting.values())
      for (const { resolve } of queue) resolve(failed('the gateway is stopping'))
    this.#waiting.clear()
    this.#waitingCount = 0
    await this.#pool?.close()
  }

  #next(): void {
    while (this.#waitingCount > 0 && this.#running < this.#parts.config.poolThreads) {
      this.#running++
      void this.#runBatch(this.#takeBatch())
    }
  }

  #queueOf(tokenizer: string): Waiting[] {
    const known = this.#waiting.get(tokenizer)
    if (known !== undefined) return known
    const queue: Waiting[] = []
    this.#waiting.set(tokenizer, queue)
    return queue
  }

  /** Takes a batch of one tokenizer and moves it to the end of the order. */
  #takeBatch(): Waiting[] {
    const [[tokenizer, queue] = ['', []]] = this.#waiting
    let letters = 0
    let count = 0
    while (count < queue.length && count < MAX_BATCH_ITEMS) {
      letters += lettersOf(queue[count].item)
      if (count > 0 && letters > MAX_BATCH_LETTERS) break
      count++
    }
    const batch = queue.splice(0, count)
    this.#waitingCount -= batch.length
    this.#waiting.delete(tokenizer)
    if (queue.length > 0) this.#waiting.set(tokenizer, queue)
    return batch
  }

  /** Puts items back at the front of the queue of their tokenizer. */
  #postpone(batch: readonly Waiting[]): void {
    if (batch.length === 0) return
    if (this.#isClosed) {
      for (const { resolve } of batch) resolve(failed('the gateway is stopping'))
      return
    }
    const { tokenizer } = batch[0].item
    this.#waiting.set(tokenizer, [...batch, ...this.#queueOf(tokenizer)])
    this.#waitingCount += batch.length
  }

  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    let results: readonly ItemResult[] = []
    let problem = 'the tokenizer was removed'
    const images = this.#parts.images()
    const items = batch.map(({ item }) => item)
    const [{ tokenizer }] = items
    const image = images.get(tokenizer)
    if (image !== undefined) {
      try {
        const task: EncoderTask = { items, tokenizer, image, registered: [...images.keys()] }
        const { encodeMs } = this.#parts.config
        const reply: EncoderResult = await runWithin(this.#open(), task, 'encodeMs', encodeMs)
        results = reply.results
        if (reply.report !== null) this.#metrics.report(reply.report, images)
      } catch (error) {
        problem = messageOf(error)
        this.#parts.host.log.warn({ err: error }, 'encoding batch failed')
      }
    }
    const postponed: Waiting[] = []
    for (const [place, waiting] of batch.entries()) {
      const result = results[place] ?? failed(problem)
      if (result.kind === 'postponed') postponed.push(waiting)
      else waiting.resolve(result)
    }
    this.#postpone(postponed)
    this.#running--
    this.#next()
  }

  #open(): TaskPool {
    if (this.#pool !== null) return this.#pool
    const { host, config } = this.#parts
    const { promptCache, segmentCache, rendering } = config
    const workerData: OpenSettings = { promptCache, segmentCache, rendering }
    const { poolThreads: threads, heapMiB } = config
    this.#pool = openThreads(host, {
      file: moduleFile('plugins/models/tokenizers/encoder-thread'),
      threads,
      heapMiB,
      workerData,
    })
    return this.#pool
  }
}

/**
 * The encoding threads by kind of vocabulary. Threads of the native library open a vocabulary in up to seconds, which must
 * not delay the vocabularies that threads share.
 */
export class EncoderPools {
  readonly #images: EncoderPoolParts['images']
  readonly #bpe: EncoderPool
  readonly #native: EncoderPool

  constructor(parts: EncoderPoolParts) {
    this.#images = parts.images
    const metrics = new CacheMetrics(parts.host.metrics)
    this.#bpe = new EncoderPool(parts, metrics)
    this.#native = new EncoderPool(parts, metrics)
  }

  /** @param items of one tokenizer. @returns results in order of the items. @throws tokenizer_busy (503) if the queue is full */
  encode(items: readonly EncodeItem[]): Promise<EncodeResult[]> {
    const [{ tokenizer }] = items
    return (this.#isNative(tokenizer) ? this.#native : this.#bpe).encode(items)
  }

  /** Opens a tokenizer that takes long to open, so that the first request need not wait. Never rejects. */
  async warmUp(tokenizer: string): Promise<void> {
    if (!this.#isNative(tokenizer)) return
    try {
      await this.encode([{ tokenizer, kind: 'text', text: '', addSpecialTokens: false }])
    } catch {
      // The queue is full: the first request opens it.
    }
  }

  /** Fails queued items and stops the threads. */
  async close(): Promise<void> {
    await Promise.all([this.#bpe.close(), this.#native.close()])
  }

  #isNative(tokenizer: string): boolean {
    return this.#images().get(tokenizer)?.vocabulary.kind === 'native'
  }
}

function failed(message: string): EncodeResult {
  return { kind: 'failed', message }
}

/** Number of characters, estimated for chats. */
function lettersOf(item: EncodeItem): number {
  if (item.kind === 'text') return item.text.length
  if (item.kind === 'pieces') return item.pieces.reduce((sum, { text }) => sum + text.length, 0)
  let letters = 0
  for (const message of item.prompt.messages) {
    const { content } = (message ?? {}) as { content?: unknown }
    letters += typeof content === 'string' ? content.length : 1_024
  }
  return letters
}

/** Prometheus series of the caches of token ids. */
class CacheMetrics {
  readonly #lookups
  readonly #bytes
  /** Last reported bytes of the caches of each tokenizer. */
  readonly #held = new Map<string, number>()

  constructor(metrics: Metrics) {
    this.#lookups = metrics.counter({
      name: 'weir_tokenizer_cache_lookups_total',
      help: 'Lookups in the caches of token ids, by cache (prompt, segment) and result (hit, miss).',
      labels: ['cache', 'result'],
    })
    this.#bytes = metrics.gauge({
      name: 'weir_tokenizer_cache_bytes',
      help: 'Memory of the caches of token ids.',
    })
  }

  /** @param registered tokenizers by id; the threads drop the caches of others */
  report(report: CacheReport, registered: ReadonlyMap<string, unknown>): void {
    this.#lookups.labels('prompt', 'hit').inc(report.promptHits)
    this.#lookups.labels('prompt', 'miss').inc(report.promptMisses)
    this.#lookups.labels('segment', 'hit').inc(report.segmentHits)
    this.#lookups.labels('segment', 'miss').inc(report.segmentMisses)
    this.#held.set(report.tokenizer, report.bytes)
    let bytes = 0
    for (const [tokenizer, held] of this.#held)
      if (registered.has(tokenizer)) bytes += held
      else this.#held.delete(tokenizer)
    this.#bytes.labels().value = bytes
  }
}
