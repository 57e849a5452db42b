/** The tokenizers on control: loads them in the background, publishes the loaded ones and keeps failures for some minutes. */

import {
  type Collection,
  GATEWAY_TENANT,
  type Logger,
  messageOf,
  type StoreService,
  type TokenizerRequest,
  type TokenizerState,
} from '#kernel'
import { uuidV7 } from '#shared'
import type { Asker, TokenizerRecord, TokenizerStatus } from './commands.ts'
import type { TokenizersConfig } from './config.ts'
import type { EncoderPools } from './encoder-pools.ts'
import { tokenizerErrors } from './errors.ts'
import type { LoaderPool } from './loader-pool.ts'
import type { LoadResult, TokenizerPlace } from './loader-task.ts'
import { SAMPLE_SOURCE, SourceError } from './source-files.ts'
import type { TokenizerImage } from './tokenizer-image.ts'
import type { WorkerBundles } from './worker-bundles.ts'

/** Time for which a failure is kept, milliseconds. */
const FAILED_LIFE_MS = 300_000

export interface RegistryParts {
  readonly config: TokenizersConfig
  readonly loader: Pick<LoaderPool, 'load'>
  readonly encoders: Pick<EncoderPools, 'warmUp'>
  readonly saved: SavedTokenizers
  readonly bundles: Pick<WorkerBundles, 'isPossible' | 'fetch' | 'forget'>
  readonly log: Logger
  publish(tokenizers: readonly TokenizerRecord[]): Promise<void>
  /** Milliseconds. Default `Date.now`. */
  readonly now?: () => number
}

interface Entry extends TokenizerPlace {
  readonly id: string
  readonly isConfigured: boolean
  readonly name: string
  state: TokenizerState
  message: string
  loaded: LoadResult | null
  failedAtMs: number
  /** Folder with the files of a worker. */
  folder: string | null
}

export class Registry {
  readonly #parts: RegistryParts
  readonly #now: () => number
  /** Oldest first. */
  readonly #entries = new Map<string, Entry>()
  readonly #jobs = new Set<Promise<void>>()
  #isStopped = false

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#now = parts.now ?? Date.now
  }

  /** Of the loaded tokenizers and of those being warmed up, by id. */
  images(): ReadonlyMap<string, TokenizerImage> {
    const images = new Map<string, TokenizerImage>()
    for (const { id, loaded } of this.#entries.values()) if (loaded !== null) images.set(id, loaded.image)
    return images
  }

  /** Starts loading the configured and the saved tokenizers. */
  async start(): Promise<void> {
    const { config, saved } = this.#parts
    for (const request of config.load) this.ensure({ ...request, isConfigured: true })
    for (const one of await saved.list()) {
      if (config.saved === 'forget') await saved.remove(one.id)
      else if (this.#named(one.name) === undefined) this.#begin(one.id, one, false)
    }
  }

  /** Resolves when no tokenizer is loading. */
  async settled(): Promise<void> {
    while (this.#jobs.size > 0) await Promise.all(this.#jobs)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.settled()
  }

  /** @throws tokenizer_path_not_allowed (400), tokenizer_exists (409), tokenizer_limit_reached (503) */
  add(request: TokenizerRequest, asker: Asker): TokenizerStatus {
    this.#forgetOld()
    if (this.#named(request.name)?.state === 'completed') throw tokenizerErrors.tokenizer_exists(request.name)
    this.#requireRoots(request)
    this.#requireRoom()
    const { name, source } = request
    this.#parts.log.info(
      { tokenizer: name, source, principal: asker.principal, request_id: asker.requestId },
      'tokenizer added',
    )
    return toStatus(this.#begin(uuidV7(), request, true))
  }

  /** Loads a tokenizer unless one of that name is loaded, is loading or has failed within the last minutes. */
  ensure(request: TokenizerRequest): void {
    this.#forgetOld()
    if (this.#named(request.name) !== undefined) return
    if (this.#entries.size >= this.#parts.config.maxTokenizers) {
      this.#parts.log.warn({ tokenizer: request.name }, 'tokenizer not loaded: limit reached')
      return
    }
    this.#begin(uuidV7(), request, false)
  }

  /** By id, then by name. */
  status(idOrName: string): TokenizerStatus | null {
    this.#forgetOld()
    const entry = this.#find(idOrName)
    return entry === undefined ? null : toStatus(entry)
  }

  /** Removes by id, then by name; false if it is not loaded. Loading is not cancelled. */
  async remove(idOrName: string, asker: Asker): Promise<boolean> {
    const entry = this.#find(idOrName)
    if (entry?.state !== 'completed') return false
    this.#entries.delete(entry.id)
    await this.#parts.saved.remove(entry.id)
    await this.#publish()
    if (entry.folder !== null) await this.#parts.bundles.forget(entry.folder)
    const { name, id } = entry
    this.#parts.log.info(
      { tokenizer: name, tokenizer_id: id, principal: asker.principal, request_id: asker.requestId },
      'tokenizer removed',
    )
    return true
  }

  #begin(id: string, request: TokenizerRequest, isSaved: boolean): Entry {
    const { name, source, chatTemplatePath, isConfigured = false } = request
    const entry: Entry = {
      id,
      name,
      source,
      chatTemplatePath,
      isConfigured,
      state: 'pending',
      message: 'queued for loading',
      loaded: null,
      failedAtMs: 0,
      folder: null,
    }
    this.#entries.set(id, entry)
    const job = this.#load(entry, isSaved).finally(() => this.#jobs.delete(job))
    this.#jobs.add(job)
    return entry
  }

  /** Never rejects. */
  async #load(entry: Entry, isSaved: boolean): Promise<void> {
    const { loader, encoders, saved, log } = this.#parts
    try {
      // The caller reports the state pending first.
      await Promise.resolve()
      entry.state = 'processing'
      entry.message = 'loading'
      const loaded = isSaved ? await loader.load(this.#toPlace(entry)) : await this.#loadAnyhow(entry)
      entry.loaded = loaded
      await encoders.warmUp(entry.id)
      const other = [...this.#entries.values()].find(
        ({ name, state }) => name === entry.name && state === 'completed',
      )
      if (other !== undefined) throw new Error(`a tokenizer named '${entry.name}' has been loaded meanwhile`)
      const { id, name, source, chatTemplatePath } = entry
      if (isSaved) await saved.save({ id, name, source, chatTemplatePath })
      entry.state = 'completed'
      entry.message = `loaded, ${loaded.facts.vocabSize} tokens`
      await this.#publish()
    } catch (error) {
      entry.state = 'failed'
      entry.loaded = null
      entry.message = messageOf(error)
      entry.failedAtMs = this.#now()
      if (!this.#isStopped)
        log.warn({ tokenizer: entry.name, reason: entry.message }, 'tokenizer failed to load')
    }
  }

  /** Loads from this machine, else from a worker of the model. @throws SourceError */
  async #loadAnyhow(entry: Entry): Promise<LoadResult> {
    const { loader, bundles } = this.#parts
    let reason = 'no path is known'
    if (entry.source !== '') {
      try {
        return await loader.load(this.#toPlace(entry))
      } catch (error) {
        if (!bundles.isPossible || this.#isStopped) throw error
        reason = messageOf(error)
      }
    }
    try {
      entry.folder = await bundles.fetch(entry.name)
      return await loader.load(this.#toPlace(entry))
    } catch (cause) {
      if (entry.folder !== null) await bundles.forget(entry.folder)
      entry.folder = null
      const why = messageOf(cause)
      throw new SourceError(`${reason}; no worker provides a usable tokenizer: ${why}`, { cause })
    }
  }

  /** Only paths of the configuration file may lie outside the roots. */
  #toPlace({ source, folder, chatTemplatePath, isConfigured }: Entry): TokenizerPlace {
    if (folder !== null) return { source: folder, chatTemplatePath }
    return { source, chatTemplatePath, roots: isConfigured ? undefined : this.#parts.config.roots }
  }

  #publish(): Promise<void> {
    const records: TokenizerRecord[] = []
    for (const { id, name, source, loaded, state } of this.#entries.values())
      if (state === 'completed' && loaded !== null) records.push({ id, name, source, facts: loaded.facts })
    return this.#parts.publish(records)
  }

  #find(idOrName: string): Entry | undefined {
    return this.#entries.get(idOrName) ?? this.#named(idOrName)
  }

  /** Prefers a loaded tokenizer. */
  #named(name: string): Entry | undefined {
    const named = [...this.#entries.values()].filter((entry) => entry.name === name)
    return named.find(({ state }) => state === 'completed') ?? named[0]
  }

  #requireRoots({ source, chatTemplatePath }: TokenizerRequest): void {
    if (this.#parts.config.roots.length > 0) return
    if (source !== SAMPLE_SOURCE) throw tokenizerErrors.tokenizer_path_not_allowed('source', source)
    if (chatTemplatePath !== undefined)
      throw tokenizerErrors.tokenizer_path_not_allowed('chat_template_path', chatTemplatePath)
  }

  #requireRoom(): void {
    const { maxTokenizers } = this.#parts.config
    const failed = [...this.#entries.values()].find(({ state }) => state === 'failed')
    if (this.#entries.size >= maxTokenizers && failed !== undefined) this.#entries.delete(failed.id)
    if (this.#entries.size >= maxTokenizers) throw tokenizerErrors.tokenizer_limit_reached(maxTokenizers)
  }

  #forgetOld(): void {
    const oldestMs = this.#now() - FAILED_LIFE_MS
    for (const [id, { state, failedAtMs }] of this.#entries)
      if (state === 'failed' && failedAtMs <= oldestMs) this.#entries.delete(id)
  }
}

function toStatus({ id, state, message, loaded }: Entry): TokenizerStatus {
  return { id, state, message, vocabSize: loaded?.facts.vocabSize ?? null }
}

export interface SavedTokenizer {
  readonly id: string
  readonly name: string
  readonly source: string
  readonly chatTemplatePath?: string
}

export class SavedTokenizers {
  readonly #collection: Collection<SavedTokenizer> | null

  /** @param store undefined where no plugin provides one: nothing is kept then */
  constructor(store: StoreService | undefined) {
    this.#collection = store?.collection<SavedTokenizer>('tokenizers') ?? null
  }

  async save(tokenizer: SavedTokenizer): Promise<void> {
    await this.#collection?.put(GATEWAY_TENANT, tokenizer.id, tokenizer)
  }

  async remove(id: string): Promise<void> {
    await this.#collection?.delete(GATEWAY_TENANT, id)
  }

  /** In the order in which they were added, which is that of the ids. */
  async list(): Promise<SavedTokenizer[]> {
    return (await this.#collection?.list(GATEWAY_TENANT)) ?? []
  }
}
