/**
 * Keys as records of a mesh, on control. Records are sealed with the secret of the mesh, so that write access to its engine makes no
 * key. While the engine is away, the keys known last stay valid for `maxStaleMs`; a gateway that has not joined knows none.
 */
import { type Logger, type MeshService, retryAfter, type SharedRecords } from '#kernel'
import { CoalescedWork, RepeatedWork } from '#shared'
import type { KeysConfig } from './config.ts'
import { keysErrors } from './errors.ts'
import { isStoredKey, type StoredKey } from './stored-key.ts'

const RETRY_S = 5
/** Between looks at the state of the mesh: a gateway that has joined accepts the keys within a second. */
const CHECK_MS = 500

interface SharedKeysParts {
  readonly mesh: Pick<MeshService, 'problem' | 'records' | 'seal' | 'open'>
  readonly config: KeysConfig
  /** Resolves when every thread has the keys; null while they are unknown. */
  readonly publish: (keys: readonly StoredKey[] | null) => Promise<void>
  readonly log: Logger
}

export class SharedKeys {
  readonly #parts: SharedKeysParts
  readonly #records: SharedRecords<string>
  /** By id, opened. */
  readonly #keys = new Map<string, StoredKey>()
  #isKnown = false
  #reachedAtMs = Number.NEGATIVE_INFINITY
  readonly #publishing = new CoalescedWork(() => this.#publish())
  readonly #checks = new RepeatedWork(async () => {
    await this.#check()
    return CHECK_MS
  })

  constructor(parts: SharedKeysParts) {
    this.#parts = parts
    this.#records = parts.mesh.records('api-keys')
    this.#records.watch((id, record) => {
      this.#take(id, record?.value)
      void this.#publishing.run()
    })
  }

  async start(): Promise<void> {
    for (const [id, { value }] of this.#records.all) this.#take(id, value)
    await this.#checks.start()
  }

  async stop(): Promise<void> {
    await this.#checks.stop()
    await this.#publishing.idle()
  }

  /** Resolves when every thread accepts the key. @throws too_many_keys, keys_not_loaded, mesh_unavailable, mesh_diverged (503) */
  async create(key: StoredKey): Promise<void> {
    this.#refuseUnknown()
    const { mesh, config, log } = this.#parts
    if (this.#records.all.size >= config.maxKeys) throw keysErrors.too_many_keys(config.maxKeys)
    const { id, tenant, role } = key
    await this.#records.change(id, () => mesh.seal(JSON.stringify(key), contextOf(id)))
    await this.#publishing.run()
    log.info({ key_id: id, owner: tenant, role }, 'key created')
  }

  /** Resolves when every thread rejects the key. @throws key_not_found, keys_not_loaded, mesh_unavailable, mesh_diverged (503) */
  async revoke(id: string): Promise<void> {
    this.#refuseUnknown()
    let isFound = false
    await this.#records.change(id, (current) => {
      isFound ||= current !== undefined
      return undefined
    })
    if (!isFound) throw keysErrors.key_not_found(id)
    await this.#publishing.run()
    this.#parts.log.info({ key_id: id }, 'key revoked')
  }

  #refuseUnknown(): void {
    if (!this.#isKnown) throw keysErrors.keys_not_loaded.with(retryAfter(RETRY_S))
  }

  async #check(): Promise<void> {
    const { mesh, config, log } = this.#parts
    if (mesh.problem() === null) this.#reachedAtMs = performance.now()
    const isKnown = performance.now() - this.#reachedAtMs < config.maxStaleMs
    if (isKnown === this.#isKnown) return
    this.#isKnown = isKnown
    if (!isKnown)
      log.warn(
        { max_stale_ms: config.maxStaleMs },
        'keys of the mesh are rejected: they were read too long ago',
      )
    await this.#publishing.run()
  }

  /** Records of the mesh are not trusted. */
  #take(id: string, sealed: unknown): void {
    this.#keys.delete(id)
    if (sealed === undefined) return
    try {
      const key: unknown = JSON.parse(this.#parts.mesh.open(String(sealed), contextOf(id)))
      if (!isStoredKey(key) || key.id !== id) throw new Error('it has not the form of a key')
      this.#keys.set(id, key)
    } catch (err) {
      this.#parts.log.warn({ key_id: id, err }, 'key of the mesh ignored: its record is damaged')
    }
  }

  #publish(): Promise<void> {
    const keys = [...this.#keys.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    return this.#parts.publish(this.#isKnown ? keys : null)
  }
}

function contextOf(id: string): string {
  return `api-key ${id}`
}
