/** The tokenizers on control: loads them in the background, publishes the loaded ones and keeps failures for some minutes. */

import { type Logger, messageOf, type TokenizerRequest, type TokenizerState } from '#kernel'
import { uuidV7 } from '#shared'
import type { Asker, TokenizerRecord, TokenizerStatus } from './commands.ts'
import type { TokenizersConfig } from './config.ts'
import type { EncoderPools } from './encoder-pool.ts'
import { tokenizerErrors } from './errors.ts'
import type { LoadResult, TokenizerPlace } from './load-tokenizer.ts'
import type { LoaderPool } from './loader-pool.ts'
import type { SavedTokenizer, TokenizerStore } from './saved-tokenizers.ts'
import { SAMPLE_SOURCE, SourceError } from './source-files.ts'
import type { TokenizerImage } from './tokenizer-image.ts'
import type { WorkerBundles } from './worker-bundles.ts'

/** Time for which a failure is kept, milliseconds. */
const FAILED_LIFE_MS = 300_000
/** Interval of the attempts to load shared tokenizers that failed to load, milliseconds. */
const RETRY_MS = 30_000

export interface RegistryParts {
  readonly config: TokenizersConfig
  readonly loader: Pick<LoaderPool, 'load'>
  readonly encoders: Pick<EncoderPools, 'warmUp'>
  readonly saved: TokenizerStore
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
  #retry: NodeJS.Timeout | null = null
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
      if (config.saved === 'forget' && !saved.isShared) await saved.remove(one)
      else this.#onChange(null, one)
    }
    saved.onChange((removed, added) => this.#onChange(removed, added))
    if (saved.isShared) this.#retry = setInterval(() => void this.#loadMissing(), RETRY_MS).unref()
  }

  /** Resolves when no tokenizer is loading. */
  async settled(): Promise<void> {
    while (this.#jobs.size > 0) await Promise.all(this.#jobs)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#retry !== null) clearInterval(this.#retry)
    await this.settled()
  }

  /** @throws tokenizer_path_not_allowed (400), tokenizer_exists (409), tokenizer_limit_reached, mesh_unavailable (503) */
  async add(request: TokenizerRequest, asker: Asker): Promise<TokenizerStatus> {
    await this.#parts.saved.checkChangeable()
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
    if (this.#hasRoom(request.name)) this.#begin(uuidV7(), request, false)
  }

  /** By id, then by name. */
  status(idOrName: string): TokenizerStatus | null {
    this.#forgetOld()
    const entry = this.#find(idOrName)
    return entry === undefined ? null : toStatus(entry)
  }

  /** Removes by id, then by name; false if it is neither loaded nor shared. Loading is not cancelled. */
  async remove(idOrName: string, asker: Asker): Promise<boolean> {
    const entry = this.#find(idOrName)
    const known = (await this.#sharedRecord(idOrName)) ?? (entry?.state === 'completed' ? entry : undefined)
    if (known === undefined) return false
    await this.#parts.saved.remove(known)
    if (entry !== undefined) await this.#drop(entry)
    const { name, id } = known
    this.#parts.log.info(
      { tokenizer: name, tokenizer_id: id, principal: asker.principal, request_id: asker.requestId },
      'tokenizer removed',
    )
    return true
  }

  async #drop(entry: Entry): Promise<void> {
    if (!this.#entries.delete(entry.id)) return
    await this.#publish()
    if (entry.folder !== null) await this.#parts.bundles.forget(entry.folder)
  }

  /** Follows changes of other gateways; own ones are here already. */
  #onChange(removed: string | null, added: SavedTokenizer | null): void {
    if (this.#isStopped) return
    const gone = removed === null ? undefined : this.#entries.get(removed)
    if (gone !== undefined) void this.#drop(gone)
    if (added === null || this.#entries.has(added.id)) return
    const present = this.#named(added.name)
    if (present !== undefined && present.state !== 'failed') return
    if (this.#hasRoom(added.name)) this.#begin(added.id, added, false)
  }

  /** A tokenizer that gateways share, which may have failed to load here. */
  async #sharedRecord(idOrName: string): Promise<SavedTokenizer | undefined> {
    const { saved } = this.#parts
    if (!saved.isShared) return undefined
    const all = await saved.list()
    return all.find(({ id }) => id === idOrName) ?? all.find(({ name }) => name === idOrName)
  }

  /** The files may have been put there since. */
  async #loadMissing(): Promise<void> {
    if (!this.#parts.saved.isShared) return
    for (const one of await this.#parts.saved.list()) {
      if (this.#entries.get(one.id)?.state === 'failed') this.#entries.delete(one.id)
      this.#onChange(null, one)
    }
  }

  #begin(id: string, request: TokenizerRequest, isSaved: boolean): Entry {
    const entry: Entry = {
      ...request,
      id,
      isConfigured: request.isConfigured === true,
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
      const { id, name, source, chatTemplatePath } = entry
      const isTaken =
        other !== undefined || (isSaved && !(await saved.save({ id, name, source, chatTemplatePath })))
      if (isTaken) throw new Error(`a tokenizer named '${entry.name}' has been loaded meanwhile`)
      entry.state = 'completed'
      entry.message = `loaded, ${loaded.facts.vocabSize} tokens`
      await this.#publish()
    } catch (error) {
      entry.state = 'failed'
      entry.loaded = null
      entry.message = messageOf(error)
      if (await this.#sharedRecord(entry.id))
        entry.message += '; a mesh shares paths, not files: the files must be at this path on every gateway'
      entry.failedAtMs = this.#now()
      if (this.#isStopped) return
      log.warn({ tokenizer: entry.name, reason: entry.message }, 'tokenizer failed to load')
      // Another gateway may have added one of that name.
      if (isSaved) await this.#loadMissing()
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

  #hasRoom(name: string): boolean {
    if (this.#entries.size < this.#parts.config.maxTokenizers) return true
    this.#parts.log.warn({ tokenizer: name }, 'tokenizer not loaded: limit reached')
    return false
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
