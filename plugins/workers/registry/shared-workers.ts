/**
 * Workers that the gateways of a mesh share: those that were added through the API. A change is a change of a record, which
 * every gateway then carries out for itself: each describes, probes and drains workers on its own, since each may reach
 * others. Workers of the configuration and of discovery belong to the gateway that lists them.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Logger, MeshService, SharedRecord, SharedRecords } from '#kernel'
import { workerErrors } from './errors.ts'
import { isSharedWorker } from './kept-worker.ts'
import type { WorkerManager } from './manager.ts'
import type { AcceptedChange } from './thread-commands.ts'
import { patchSpec, type WorkerPatch, type WorkerSpec } from './worker-spec.ts'
import { workerKey } from './worker-url.ts'

/** Record of a worker, under the normal form of its URL. */
export interface SharedWorker {
  /** Without the key. */
  readonly spec: WorkerSpec
  /** Sealed key; null without one. */
  readonly apiKey: string | null
  /** Counts replacements: after each one, gateways describe the worker again. */
  readonly replacements: number
  /** True if a gateway has registered it; else it is removed when its registration fails. */
  readonly isConfirmed: boolean
}

export class SharedWorkers {
  readonly #mesh: MeshService
  readonly #records: SharedRecords<SharedWorker>
  readonly #manager: WorkerManager
  readonly #log: Logger
  /** Workers whose registration this gateway has accepted, until it succeeds or fails. */
  readonly #accepted = new Set<string>()
  /** What was last carried out here, by key. */
  readonly #known = new Map<string, { readonly spec: WorkerSpec; readonly replacements: number }>()

  /** Call in `register`. */
  constructor(mesh: MeshService, manager: WorkerManager, log: Logger) {
    this.#mesh = mesh
    this.#records = mesh.records<SharedWorker>('workers', isSharedWorker)
    this.#manager = manager
    this.#log = log
    this.#records.watch((key, record) => this.#follow(key, record))
  }

  /** Starts to register the workers of the mesh. */
  start(): void {
    for (const [key, record] of this.#records.all) this.#follow(key, record)
  }

  /** @throws as `WorkerManager.register`, mesh_unavailable (503) */
  async register(spec: WorkerSpec): Promise<AcceptedChange> {
    this.#manager.checkNew(spec)
    const key = workerKey(spec.url)
    const id = sharedWorkerId(key)
    this.#accepted.add(key)
    try {
      await this.#records.change(key, (current) => {
        if (current !== undefined) throw workerErrors.worker_already_exists(current.spec.url, id)
        return { ...this.#sealed(key, spec), replacements: 0, isConfirmed: false }
      })
    } catch (error) {
      this.#accepted.delete(key)
      throw error
    }
    return { id, url: spec.url }
  }

  /** @throws as `WorkerManager.replace`, mesh_unavailable (503) */
  async replace(id: string, spec: WorkerSpec): Promise<AcceptedChange> {
    const key = await this.#keyOf(id)
    if (key === undefined) return this.#manager.replace(id, spec)
    this.#manager.checkReplacement(id, spec)
    await this.#change(key, id, (current) => ({
      ...this.#sealed(key, spec),
      replacements: current.replacements + 1,
      isConfirmed: current.isConfirmed,
    }))
    return { id, url: spec.url }
  }

  /** Applied to the newest record, so that no member of another change is lost. @throws as `WorkerManager.patch`, mesh_unavailable (503) */
  async patch(id: string, patch: WorkerPatch): Promise<AcceptedChange> {
    const key = await this.#keyOf(id)
    if (key === undefined) return this.#manager.patch(id, patch)
    const { apiKey, ...rest } = patch
    const { spec } = await this.#change(key, id, (current) => ({
      ...current,
      spec: patchSpec(current.spec, rest),
      ...(apiKey !== undefined && { apiKey: this.#mesh.seal(apiKey, contextOf(key)) }),
    }))
    return { id, url: spec.url }
  }

  /** @throws as `WorkerManager.remove`, mesh_unavailable (503) */
  async remove(id: string): Promise<AcceptedChange> {
    const key = await this.#keyOf(id)
    if (key === undefined) return this.#manager.remove(id)
    const url = this.#records.all.get(key)?.value.spec.url ?? key
    await this.#records.change(key, () => undefined)
    return { id, url }
  }

  /** A registration of this gateway has succeeded. */
  onRegistered(url: string): void {
    const key = workerKey(url)
    this.#accepted.delete(key)
    if (this.#records.all.get(key)?.value.isConfirmed !== false) return
    this.#records
      .change(key, (current) =>
        current?.isConfirmed === false ? { ...current, isConfirmed: true } : current,
      )
      .catch((err: unknown) => this.#log.warn({ err, worker: url }, 'worker not confirmed in the mesh'))
  }

  /** The status of a failed job has expired: a worker that no gateway could register goes. */
  onExpired(url: string): void {
    const key = workerKey(url)
    if (!this.#accepted.delete(key)) return
    this.#records
      .change(key, (current) => (current?.isConfirmed === false ? undefined : current))
      .catch((err: unknown) =>
        this.#log.warn({ err, worker: url }, 'failed worker not removed from the mesh'),
      )
  }

  /** Undefined for a worker that only this gateway has, and for an unknown id. @throws mesh_unavailable (503) if the id is unknown and the engine is away */
  async #keyOf(id: string): Promise<string | undefined> {
    if (this.#manager.keyOf(id) === undefined) await this.#mesh.checkChangeable()
    const key = this.#manager.keyOf(id)
    return key !== undefined && this.#records.all.has(key) ? key : undefined
  }

  async #change(
    key: string,
    id: string,
    next: (current: SharedWorker) => SharedWorker,
  ): Promise<SharedWorker> {
    const record = await this.#records.change(key, (current) => {
      if (current === undefined) throw workerErrors.worker_not_found(id)
      return next(current)
    })
    if (record === undefined) throw workerErrors.worker_not_found(id)
    return record.value
  }

  #sealed(key: string, { apiKey, ...rest }: WorkerSpec): Pick<SharedWorker, 'spec' | 'apiKey'> {
    const sealed = apiKey === null ? null : this.#mesh.seal(apiKey, contextOf(key))
    return { spec: { ...rest, apiKey: null }, apiKey: sealed }
  }

  /** Carries out a change of a record on this gateway. */
  #follow(key: string, record: SharedRecord<SharedWorker> | undefined): void {
    try {
      if (record === undefined) {
        this.#known.delete(key)
        this.#accepted.delete(key)
        this.#manager.drop(key)
        return
      }
      const { apiKey, replacements } = record.value
      const opened = apiKey === null ? null : this.#mesh.open(apiKey, contextOf(key))
      const spec = { ...record.value.spec, apiKey: opened }
      const known = this.#known.get(key)
      this.#known.set(key, { spec, replacements })
      const isReplaced = known !== undefined && known.replacements !== replacements
      if (known !== undefined && !isReplaced && isDeepStrictEqual(known.spec, spec)) return
      this.#manager.adopt(spec, this.#accepted.has(key) ? 'api' : 'mesh', isReplaced)
    } catch (err) {
      this.#log.error({ err, worker: key }, 'change of a worker in the mesh not carried out')
    }
  }
}

/** The same on every gateway: derived from the URL. @param rank of the engine, 0-based */
export function sharedWorkerId(key: string, rank = 0): string {
  const hex = createHash('sha256').update(`${key}@${rank}`).digest('hex')
  // Version 8: an id of its own scheme. @source RFC 9562 section 5.8
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** What a sealed key belongs to. */
function contextOf(key: string): string {
  return `worker ${key}`
}
