/** The stored keys on control: reads them, creates and revokes them, and publishes each change to every thread. */
import {
  type Collection,
  GATEWAY_TENANT,
  type Logger,
  type MeshChannel,
  retryAfter,
  type StoreService,
  settlesWithin,
} from '#kernel'
import { CoalescedWork, FailureLog, pagesOf, RepeatedWork, SerialByKey } from '#shared'
import type { KeysConfig } from './config.ts'
import { keysErrors } from './errors.ts'
import { isStoredKey, type StoredKey } from './stored-key.ts'

const COLLECTION = 'api-keys'
/** An expired key is listed for this time, then the store deletes it. */
const EXPIRED_KEPT_MS = 30 * 86_400_000
const RETRY_S = 5
/** The message has no content. */
const CHANGED = Buffer.from('changed')
const START_WAIT_MS = 3_000

export interface KeyKeeperOptions {
  readonly store: StoreService
  /** Other gateways write to the store too. */
  readonly isShared: boolean
  /** Announces changes to the gateways of a mesh, which read the store at once; null without one. */
  readonly channel: MeshChannel | null
  readonly config: KeysConfig
  /** Resolves when every thread has the keys; null while they are unknown. */
  readonly publish: (keys: readonly StoredKey[] | null) => Promise<void>
  readonly log: Logger
}

/** A key and the version of its record. */
interface Held {
  readonly key: StoredKey
  readonly version: string | null
}

export class KeyKeeper {
  readonly #options: KeyKeeperOptions
  readonly #collection: Collection<unknown>
  /** By id; null while the keys are unknown. */
  #held: Map<string, Held> | null = null
  #readAtMs = 0
  readonly #failures: FailureLog
  /** Ids of damaged records that were logged. */
  readonly #damaged = new Set<string>()
  /** A local store has no other writers: it is read once. */
  readonly #refreshes = new RepeatedWork(async () => {
    await this.#serial.run(COLLECTION, () => this.#refresh())
    const { isShared, config } = this.#options
    return this.#held === null || isShared ? config.refreshMs : null
  })
  /** Reads and writes run one after another, so that a read never undoes a later write. */
  readonly #serial = new SerialByKey()

  constructor(options: KeyKeeperOptions) {
    this.#options = options
    this.#failures = new FailureLog(options.log, 'stored keys could not be read')
    this.#collection = options.store.collection(COLLECTION)
    const announced = new CoalescedWork(() => this.#serial.run(COLLECTION, () => this.#refresh()))
    options.channel?.onMessage(() => void announced.run())
  }

  /**
   * Reads the keys; if the store is unavailable or slow, they stay unknown until a read succeeds. Resolves after
   * `START_WAIT_MS` at the latest, so that a store that does not respond does not stop the boot.
   */
  async start(): Promise<void> {
    await settlesWithin(this.#refreshes.start(), START_WAIT_MS)
  }

  async stop(): Promise<void> {
    await this.#refreshes.stop()
    await this.#serial.run(COLLECTION, async () => undefined)
  }

  /** Resolves when every thread accepts the key. @throws too_many_keys, keys_not_loaded, or an error of the store */
  create(key: StoredKey): Promise<void> {
    return this.#serial.run(COLLECTION, async () => {
      const held = this.#known()
      const { maxKeys } = this.#options.config
      if (held.size >= maxKeys) throw keysErrors.too_many_keys(maxKeys)
      const { id, expiresAtMs } = key
      await this.#collection.put(GATEWAY_TENANT, id, key, {
        durability: 'synced',
        ...(expiresAtMs !== null && { expiresAtMs: expiresAtMs + EXPIRED_KEPT_MS }),
      })
      held.set(id, { key, version: null })
      this.#options.channel?.send(CHANGED)
      await this.#publish()
      this.#options.log.info({ key_id: id, owner: key.tenant, role: key.role }, 'key created')
    })
  }

  /** Resolves when every thread rejects the key. @throws key_not_found, keys_not_loaded, or an error of the store */
  revoke(id: string): Promise<void> {
    return this.#serial.run(COLLECTION, async () => {
      const held = this.#known()
      // Another gateway may have created it a moment ago.
      if (!held.has(id) && (await this.#collection.read(GATEWAY_TENANT, id)) === undefined)
        throw keysErrors.key_not_found(id)
      await this.#collection.delete(GATEWAY_TENANT, id, { durability: 'synced' })
      held.delete(id)
      this.#options.channel?.send(CHANGED)
      await this.#publish()
      this.#options.log.info({ key_id: id }, 'key revoked')
    })
  }

  #known(): Map<string, Held> {
    if (this.#held === null) throw keysErrors.keys_not_loaded.with(retryAfter(RETRY_S))
    return this.#held
  }

  #publish(): Promise<void> {
    if (this.#held === null) return this.#options.publish(null)
    const keys = [...this.#held.values()].map(({ key }) => key)
    return this.#options.publish(keys.sort((a, b) => (a.id < b.id ? -1 : 1)))
  }

  /** Never throws. */
  async #refresh(): Promise<void> {
    const { config, log } = this.#options
    try {
      const next = await this.#read()
      this.#failures.succeeded()
      this.#readAtMs = performance.now()
      if (this.#isSame(next)) return
      this.#held = next
      await this.#publish()
    } catch (err) {
      this.#failures.failed(err)
      if (this.#held === null || performance.now() - this.#readAtMs < config.maxStaleMs) return
      log.warn({ max_stale_ms: config.maxStaleMs }, 'stored keys are rejected: they were read too long ago')
      this.#held = null
      await this.#publish()
    }
  }

  async #read(): Promise<Map<string, Held>> {
    const found = new Map<string, Held>()
    for await (const records of pagesOf(this.#collection, GATEWAY_TENANT)) {
      for (const { id, value, version } of records) {
        if (isStoredKey(value)) found.set(id, { key: value, version })
        else this.#reportDamaged(id)
      }
    }
    return found
  }

  #reportDamaged(id: string): void {
    if (this.#damaged.has(id)) return
    this.#damaged.add(id)
    this.#options.log.warn({ key_id: id }, 'stored key ignored: its record is damaged')
  }

  #isSame(next: ReadonlyMap<string, Held>): boolean {
    const held = this.#held
    if (held === null || held.size !== next.size) return false
    for (const [id, { version }] of next) if (held.get(id)?.version !== version) return false
    return true
  }
}
