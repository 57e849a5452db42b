/** Keys that the gateway makes for sealed text: kept in a store, so that restarts and other gateways have the same ones. */
import { randomBytes } from 'node:crypto'
import { GATEWAY_TENANT, type Logger, type StoreService } from '#kernel'

const COLLECTION = 'gateway-secrets'
const RECORD = 'responses-seal-key'
const KEY_BYTES = 32
/** One of the shared store, one of the gateway's own. */
const MAX_KEYS = 2
/** A key that another gateway makes at the same time is read at the next try. */
const TRIES = 3

export interface KeyStores {
  readonly shared: StoreService | undefined
  readonly own: StoreService | undefined
  readonly log: Logger
}

interface KeyRecord {
  /** Base64. */
  readonly key: string
}

/**
 * The keys of both stores. Without a configured key the first is made where it does not exist, and is a key of this
 * process alone where no store keeps it.
 *
 * @param isConfigured a configured key seals; the stored ones only open what was sealed before
 * @returns the key to seal with first, unless one is configured
 */
export async function loadKeys({ shared, own, log }: KeyStores, isConfigured: boolean): Promise<Buffer[]> {
  const keys: Buffer[] = []
  for (const store of [shared, own]) {
    if (store === undefined) continue
    const makes = !isConfigured && store === (shared ?? own)
    try {
      const key = makes ? await readOrMakeKey(store) : await readKey(store)
      if (key !== null) keys.push(key)
    } catch (err) {
      log.error({ err }, 'encryption key of reasoning could not be read or stored')
      if (makes) keys.push(randomBytes(KEY_BYTES))
    }
  }
  if (keys.length > 0 || isConfigured) return keys
  log.warn(
    { setting: 'plugins.responses.encryptionKey' },
    'encrypted reasoning cannot be decrypted after a restart: set encryptionKey, or enable storage or postgres',
  )
  return [randomBytes(KEY_BYTES)]
}

/** @throws errors of the store, and for a record that holds no key */
async function readOrMakeKey(store: StoreService): Promise<Buffer> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const key = await readKey(store)
    if (key !== null) return key
    const value: KeyRecord = { key: randomBytes(KEY_BYTES).toString('base64') }
    const target = { collection: COLLECTION, tenant: GATEWAY_TENANT, id: RECORD }
    await store.write([{ kind: 'put', ...target, value, onlyIf: null }], { durability: 'synced' })
  }
  throw new Error(`the record ${RECORD} of the collection ${COLLECTION} is gone as soon as it is written`)
}

/** Null where there is none. @throws errors of the store, and for a record that holds no key */
async function readKey(store: StoreService): Promise<Buffer | null> {
  const record = await store.collection<Partial<KeyRecord> | null>(COLLECTION).get(GATEWAY_TENANT, RECORD)
  if (record === undefined) return null
  const text = record?.key
  const key = typeof text === 'string' ? Buffer.from(text, 'base64') : null
  if (key?.length !== KEY_BYTES)
    throw new TypeError(
      `the record ${RECORD} of the collection ${COLLECTION} must hold ${KEY_BYTES} bytes in base64`,
    )
  return key
}

/** Keys that the control thread has loaded, for the data threads, which start later. */
export class SharedKeys {
  static readonly BYTES = 4 + MAX_KEYS * KEY_BYTES
  readonly #count: Int32Array
  readonly #bytes: Uint8Array

  /** @param memory BYTES that all threads share, zeroed when new */
  constructor(memory: SharedArrayBuffer) {
    this.#count = new Int32Array(memory, 0, 1)
    this.#bytes = new Uint8Array(memory, 4)
  }

  publish(keys: readonly Buffer[]): void {
    for (const [index, key] of keys.entries()) this.#bytes.set(key, index * KEY_BYTES)
    Atomics.store(this.#count, 0, keys.length)
  }

  read(): Buffer[] {
    return Array.from({ length: Atomics.load(this.#count, 0) }, (_, index) =>
      Buffer.from(this.#bytes.slice(index * KEY_BYTES, (index + 1) * KEY_BYTES)),
    )
  }
}
