/** Keys that the gateway makes for sealed text: kept in a store, so that restarts and other gateways have the same ones. */
import { randomBytes } from 'node:crypto'
import { defineReplica, GATEWAY_TENANT, GatewayError, type Logger, type StoreService } from '#kernel'

const COLLECTION = 'gateway-secrets'
const RECORD = 'responses-seal-key'
const KEY_BYTES = 32
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
 * Loads the keys of both stores. Without a configured key, a missing first key is created; without a store it is valid for
 * this process only.
 *
 * @param isConfigured a configured key seals; the stored ones only open what was sealed before
 * @returns the key to seal with first, unless one is configured; incomplete if a store is down
 */
export async function loadKeys(
  { shared, own, log }: KeyStores,
  isConfigured: boolean,
): Promise<{ readonly keys: Buffer[]; readonly isComplete: boolean }> {
  const keys: Buffer[] = []
  let isComplete = true
  for (const store of [shared, own]) {
    if (store === undefined) continue
    const makes = !isConfigured && store === (shared ?? own)
    try {
      const key = makes ? await readOrMakeKey(store) : await readKey(store)
      if (key !== null) keys.push(key)
    } catch (err) {
      log.error({ err }, 'encryption key of reasoning could not be read or stored')
      if (err instanceof GatewayError && err.kind === 'unavailable') isComplete = false
      if (makes) keys.push(randomBytes(KEY_BYTES))
    }
  }
  if (keys.length > 0 || isConfigured) return { keys, isComplete }
  log.warn(
    { setting: 'plugins.responses.encryptionKey' },
    'encrypted reasoning cannot be decrypted after a restart: set encryptionKey, or enable storage or postgres',
  )
  return { keys: [randomBytes(KEY_BYTES)], isComplete }
}

/** @throws errors of the store, and for a record without a key */
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

/** Null if there is no record. @throws errors of the store, and for a record without a key */
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

/** Keys in base64, the one that seals first; published by control. */
export const SealKeysReplica = defineReplica<readonly string[]>('responses.seal-keys', [])

/** Time between two attempts to load keys from a store that is down, milliseconds. */
const RETRY_MS = 1_000

/**
 * Loads and publishes the keys on control, and replaces a temporary key once the store works.
 *
 * @param isConfigured as for `loadKeys`
 * @param isDown whether a store is known to be down
 */
export function sealKeyLoader(
  stores: KeyStores,
  isConfigured: boolean,
  isDown: () => boolean,
  publish: (keys: readonly string[]) => Promise<void>,
) {
  let timer: NodeJS.Timeout | null = null
  /** @param temporary keys in use, which still open what they sealed */
  const retryLater = (temporary: readonly Buffer[]) => {
    timer = setTimeout(async () => {
      const { keys, isComplete } = isDown()
        ? { keys: [], isComplete: false }
        : await loadKeys(stores, isConfigured)
      if (timer === null) return
      if (!isComplete) return retryLater(temporary)
      await publish([...new Set([...keys, ...temporary].map(toText))])
      stores.log.info({}, 'encryption key of reasoning loaded')
    }, RETRY_MS)
    timer.unref()
  }
  return {
    /** Resolves when the first keys are published; never rejects for errors of a store. */
    async start(): Promise<void> {
      const { keys, isComplete } = await loadKeys(stores, isConfigured)
      await publish(keys.map(toText))
      if (!isComplete) retryLater(keys)
    },
    stop(): void {
      if (timer !== null) clearTimeout(timer)
      timer = null
    },
  }
}

function toText(key: Buffer): string {
  return key.toString('base64')
}
