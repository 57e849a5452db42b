/**
 * Fetches tokenizers from the workers of a model, one after the other, and keeps the files in a private folder until the
 * gateway stops.
 */

import { mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BundleSource, WorkerEntry } from '#kernel'
import { messageOf } from '#kernel'
import { SourceError } from './source-files.ts'

/** Limits of an archive and of its content. */
export const BUNDLE_LIMITS = { archiveBytes: 209_715_200, maxEntries: 50, maxBytes: 524_288_000 }
const FETCH_MS = 120_000
const ROUNDS = 3
const PAUSE_MS = 2_000

export interface WorkerBundlesParts {
  readonly sources: readonly BundleSource[]
  workers(): readonly WorkerEntry[]
  unpack(archive: string, folder: string): Promise<void>
  /** Default: a timer. */
  readonly wait?: (ms: number) => Promise<unknown>
}

export class WorkerBundles {
  readonly #parts: WorkerBundlesParts
  readonly #wait: (ms: number) => Promise<unknown>
  #folder: string | null = null
  #count = 0
  #isClosed = false

  constructor(parts: WorkerBundlesParts) {
    this.#parts = parts
    this.#wait = parts.wait ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms).unref()))
  }

  /** False if no transport can fetch tokenizers. */
  get isPossible(): boolean {
    return this.#parts.sources.length > 0
  }

  /** Parent of all folders, created on first use. */
  get root(): string {
    this.#folder ??= mkdtempSync(join(realpathSync(tmpdir()), 'weir-tokenizers-'))
    return this.#folder
  }

  /** A folder with the tokenizer's files. @throws SourceError with the last reason */
  async fetch(model: string): Promise<string> {
    let reason = 'no worker of the model provides it'
    for (let round = 0; round < ROUNDS && !this.#isClosed; round++) {
      // Workers that are being registered come into the table a little later.
      if (round > 0) await this.#wait(PAUSE_MS)
      for (const { worker, source } of this.#offered(model)) {
        try {
          return await this.#take(worker, source)
        } catch (error) {
          reason = `${worker.url}: ${messageOf(error)}`
        }
      }
    }
    throw new SourceError(reason)
  }

  async forget(folder: string): Promise<void> {
    await rm(folder, { recursive: true, force: true })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#folder !== null) await this.forget(this.#folder)
  }

  async #take(worker: WorkerEntry, source: BundleSource): Promise<string> {
    const folder = join(this.root, String(++this.#count))
    const archive = `${folder}.zip`
    mkdirSync(folder, { mode: 0o700 })
    try {
      await source.fetch(worker, archive, { maxBytes: BUNDLE_LIMITS.archiveBytes, timeoutMs: FETCH_MS })
      await this.#parts.unpack(archive, folder)
      return folder
    } catch (error) {
      await this.forget(folder)
      throw error
    } finally {
      await this.forget(archive)
    }
  }

  #offered(model: string): { worker: WorkerEntry; source: BundleSource }[] {
    return this.#parts.workers().flatMap((worker) => {
      if (!worker.models.some(({ id }) => id === model)) return []
      const source = this.#parts.sources.find((one) => one.covers(worker))
      return source === undefined ? [] : [{ worker, source }]
    })
  }
}
