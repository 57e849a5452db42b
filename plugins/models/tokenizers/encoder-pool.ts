/**
 * The threads that load the vocabularies. Only control opens them, so that the process has one set of threads for any
 * number of serving threads, which send their texts by command.
 */

import { type Host, messageOf, TaskFailure, type TaskPool, TaskStop } from '#kernel'
import { openTaskPool } from '#shared'
import type { TokenizersConfig } from './config.ts'
import type { EncoderMetrics } from './encoder-metrics.ts'
import type {
  EncodeItem,
  EncodeResult,
  EncoderReply,
  EncoderTask,
  EncoderThreadData,
  ItemResult,
  TokenizerFacts,
  TokenizerPlace,
} from './encoder-task.ts'
import { tokenizerErrors } from './errors.ts'
import { SourceError } from './source-files.ts'
import { BUNDLE_LIMITS } from './worker-bundles.ts'

/** Maximum texts and characters of one message to a thread, so that one large text does not delay many. */
const MAX_BATCH_ITEMS = 64
const MAX_BATCH_LETTERS = 65_536
/** The native library and the template engine nest deeper than the default allows. MiB */
const STACK_MIB = 8
/** Maximum number of queued loads. */
const LOAD_QUEUE = 1_024

export interface EncoderPoolParts {
  readonly host: Host
  readonly config: TokenizersConfig
  readonly metrics: EncoderMetrics
  /** All that are registered or being loaded. */
  readonly places: () => readonly TokenizerPlace[]
}

interface Waiting {
  readonly item: EncodeItem
  readonly resolve: (result: EncodeResult) => void
}

export class EncoderPool {
  readonly #parts: EncoderPoolParts
  /** Queues by tokenizer, next one first, so that no tokenizer delays the others. */
  readonly #waiting = new Map<string, Waiting[]>()
  #waitingCount = 0
  #pool: TaskPool | null = null
  #running = 0
  #isClosed = false

  constructor(parts: EncoderPoolParts) {
    this.#parts = parts
  }

  /** @throws SourceError with the reason */
  async load(place: TokenizerPlace): Promise<TokenizerFacts> {
    const reply = await this.#run({ kind: 'load', place }, this.#parts.config.loadMs)
    if (reply.kind === 'loaded') return reply.facts
    throw new SourceError(reply.kind === 'unusable' ? reply.message : 'the tokenizer thread did not respond')
  }

  /** Files of an archive. @throws SourceError */
  async unpack(archive: string, folder: string): Promise<void> {
    const task: EncoderTask = { kind: 'unpack', archive, folder, limits: BUNDLE_LIMITS }
    const reply = await this.#run(task, this.#parts.config.loadMs)
    if (reply.kind !== 'unpacked')
      throw new SourceError(
        reply.kind === 'unusable' ? reply.message : 'the tokenizer thread did not respond',
      )
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
    let problem = 'the tokenizer thread did not respond'
    try {
      const items = batch.map(({ item }) => item)
      const task: EncoderTask = { kind: 'encode', items, places: this.#parts.places() }
      const reply = await this.#run(task, this.#parts.config.encodeMs)
      if (reply.kind === 'encoded') {
        results = reply.results
        this.#parts.metrics.report(reply.report)
      }
    } catch (error) {
      problem = messageOf(error)
      this.#parts.host.log.warn({ err: error }, 'encoding batch failed')
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

  async #run(task: EncoderTask, deadlineMs: number): Promise<EncoderReply> {
    const stop = new TaskStop()
    const timer = setTimeout(() => stop.stop(), deadlineMs).unref()
    try {
      return await this.#open().run<EncoderReply>(task, { stop })
    } catch (error) {
      if (error instanceof TaskFailure && error.kind === 'stopped')
        throw new Error(`timed out after ${deadlineMs} ms`, { cause: error })
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  #open(): TaskPool {
    if (this.#pool !== null) return this.#pool
    const { host, config } = this.#parts
    const { promptCache, segmentCache, rendering, maxFileBytes } = config
    const data: EncoderThreadData = { promptCache, segmentCache, rendering, maxFileBytes }
    this.#pool = openTaskPool(host, {
      file: new URL(
        import.meta.url.endsWith('.ts') ? './encoder-thread.ts' : './encoder-thread.js',
        import.meta.url,
      ),
      threads: config.poolThreads,
      queueLimit: config.queueLimit + LOAD_QUEUE,
      workerData: data,
      heapMiB: config.heapMiB,
      stackMiB: STACK_MIB,
    })
    return this.#pool
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
