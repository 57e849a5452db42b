/**
 * The thread that loads tokenizers, one after another, so that neither a large nor a hostile one delays encoding. It ends
 * when nothing is left to load, which also frees the memory that loading took.
 */
import { type Host, moduleFile, type TaskPool } from '#kernel'
import type { TokenizersConfig } from './config.ts'
import type { LoaderThreadData, LoadResult, TokenizerPlace } from './load-tokenizer.ts'
import type { LoaderResult, LoaderTask } from './loader-thread.ts'
import { openThreads, runWithin } from './pool-threads.ts'
import { SourceError } from './source-files.ts'
import { BUNDLE_LIMITS } from './worker-bundles.ts'

export class LoaderPool {
  readonly #host: Host
  readonly #config: TokenizersConfig
  #pool: TaskPool | null = null
  /** Tasks that run or wait. */
  #open = 0
  #last: Promise<unknown> = Promise.resolve()
  #ending: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(host: Host, config: TokenizersConfig) {
    this.#host = host
    this.#config = config
  }

  /** @throws Error with the reason */
  async load(place: TokenizerPlace): Promise<LoadResult> {
    const reply = await this.#run({ kind: 'load', place })
    if (reply.kind !== 'loaded') throw toSourceError(reply)
    return reply.loaded
  }

  /** Files of an archive. @throws Error with the reason */
  async unpack(archive: string, folder: string): Promise<void> {
    const reply = await this.#run({ kind: 'unpack', archive, folder, limits: BUNDLE_LIMITS })
    if (reply.kind !== 'unpacked') throw toSourceError(reply)
  }

  /** Fails all tasks and stops the thread. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#pool?.close(), this.#ending])
  }

  /** Starts a task after the ones before it, so that its time limit does not include theirs. */
  #run(task: LoaderTask): Promise<LoaderResult> {
    this.#open++
    const run = this.#last.then(() => this.#runNow(task))
    this.#last = run.catch(() => {})
    return run
  }

  async #runNow(task: LoaderTask): Promise<LoaderResult> {
    try {
      if (this.#isClosed) throw new SourceError('the gateway is stopping')
      this.#pool ??= this.#openPool()
      return await runWithin(this.#pool, task, 'loadMs', this.#config.loadMs)
    } finally {
      if (--this.#open === 0) this.#endPool()
    }
  }

  #endPool(): void {
    const pool = this.#pool
    this.#pool = null
    this.#ending = Promise.all([this.#ending, pool?.close()]).then(() => {})
  }

  #openPool(): TaskPool {
    const { maxFileBytes, rendering, segmentCache, heapMiB } = this.#config
    const workerData: LoaderThreadData = { maxFileBytes, rendering, usesSegments: segmentCache.enabled }
    return openThreads(this.#host, {
      file: moduleFile('plugins/models/tokenizers/loader-thread'),
      threads: 1,
      heapMiB,
      workerData,
    })
  }
}

function toSourceError(reply: LoaderResult): SourceError {
  return new SourceError(reply.kind === 'unusable' ? reply.message : 'the loading thread did not respond')
}
