/** Reads and checks the configured keys at startup. */
import type { ConfiguredKey, Logger, SettingProblem } from '#kernel'
import { keyEntryProblems, tenantIdProblem, toKeyRecord } from '#shared'
import type { AuthConfig } from './config.ts'
import { keyDigest, type TableKey, toTableKey } from './key-table.ts'

export interface FileKey extends TableKey {
  /** For listings. */
  readonly shown: ConfiguredKey
}

export interface ConfiguredKeys {
  readonly keys: readonly FileKey[]
  /** With a credential of any kind, no route is open. */
  readonly hasCredentials: boolean
}

/**
 * True if the section configures a credential of any kind, valid or not. Without one, and without the `keys` plugin, every route
 * is open.
 */
export function hasCredentials({ apiKey, tenantKeys, controlPlaneKeys, keys, jwt }: AuthConfig): boolean {
  return (
    apiKey !== null ||
    jwt !== undefined ||
    [tenantKeys, controlPlaneKeys, keys].some(({ length }) => length > 0)
  )
}

/** A key without id, expiry and restrictions, for listings. */
const PLAIN = { id: null, name: null, expiresAtMs: null, models: null, routes: null } as const

/**
 * Reads the section's keys.
 *
 * @throws Error for the first of `keyProblems`, so that an unchecked section never opens a route
 */
export function readKeys(config: AuthConfig, log: Pick<Logger, 'warn'>): ConfiguredKeys {
  for (const { path, text } of keyProblems(config)) throw new Error(`plugins.auth.${path.join('.')} ${text}`)
  const { apiKey, keys } = config
  const hasControlPlane =
    config.controlPlaneKeys.length > 0 || keys.some(({ principal }) => principal !== undefined)
  const found: FileKey[] = []
  const add = (setting: string, digest: string, key: Omit<ConfiguredKey, 'setting'>) => {
    const shown = { ...key, setting: `plugins.auth.${setting}` }
    found.push({ ...toTableKey(digest, shown), shown })
  }
  if (apiKey !== null) {
    const role = hasControlPlane ? null : 'admin'
    add('apiKey', keyDigest(apiKey), { ...PLAIN, owner: 'auth:shared', isServing: true, role })
  }
  for (const [index, entry] of config.tenantKeys.entries()) {
    const { id, key } = readTenantKey(entry)
    const owner = `auth:${id}`
    add(`tenantKeys.${index}`, keyDigest(key), { ...PLAIN, owner, isServing: true, role: null })
  }
  for (const [index, entry] of keys.entries()) {
    const { id, key } = entry
    const record = toKeyRecord(id, key === undefined ? (entry.digest ?? '') : keyDigest(key), entry)
    const { digest, tenant: owner, ...members } = record
    add(`keys.${index}`, digest, { ...members, name: null, owner, isServing: members.role === null })
  }
  for (const [index, entry] of config.controlPlaneKeys.entries()) {
    // Only the first three colons separate fields, so the key may contain colons.
    const [id = '', name = '', roleName = '', ...rest] = entry.split(':')
    const key = rest.join(':')
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) {
      log.warn({ index }, 'control-plane key ignored: it must be of the form id:name:role:key')
      continue
    }
    // Any role other than admin is treated as user.
    const role = roleName.trim().toLowerCase() === 'admin' ? 'admin' : 'user'
    const shown = { ...PLAIN, name: name || null, owner: `auth:${id}`, isServing: false }
    add(`controlPlaneKeys.${index}`, keyDigest(key), { ...shown, role })
  }
  return { keys: found, hasCredentials: hasCredentials(config) }
}

/** The texts contain no key. */
export function* keyProblems({ apiKey, tenantKeys, keys }: AuthConfig): Generator<SettingProblem> {
  if (apiKey !== null && isPadded(apiKey))
    yield { path: ['apiKey'], text: 'must not start or end with spaces, which request headers cannot carry' }
  const seenTenants = new Set<string>()
  const seenDigests = new Set<string>(apiKey === null ? [] : [keyDigest(apiKey)])
  for (const [index, entry] of tenantKeys.entries()) {
    const path = ['tenantKeys', String(index)]
    const { id, key } = readTenantKey(entry)
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) {
      const text = 'must be of the form tenant_id:key, both non-empty and without spaces at their ends'
      yield { path, text }
    } else if (seenTenants.has(id) || seenDigests.has(keyDigest(key))) {
      yield { path, text: 'duplicates the tenant id or key of an earlier entry' }
    }
    const problem = tenantIdProblem(id)
    // The part before the colon of `auth:a:key` is no secret.
    if (problem !== null) yield { path, text: problem }
    seenTenants.add(id)
    seenDigests.add(keyDigest(key))
  }
  yield* listedProblems(keys, seenDigests)
}

/** @param seenDigests of the keys of other settings */
function* listedProblems(keys: AuthConfig['keys'], seenDigests: Set<string>): Generator<SettingProblem> {
  const seenIds = new Set<string>()
  for (const [index, entry] of keys.entries()) {
    const base = ['keys', String(index)]
    const { id, key, digest } = entry
    for (const { path, text } of keyEntryProblems(entry)) yield { path: [...base, ...path], text }
    if (seenIds.has(id)) yield { path: [...base, 'id'], text: 'is the id of an earlier entry' }
    seenIds.add(id)
    if ((key === undefined) === (digest === undefined))
      yield { path: [...base, 'key'], text: 'must be set, or digest, but not both' }
    if (key !== undefined && isPadded(key))
      yield {
        path: [...base, 'key'],
        text: 'must not start or end with spaces, which request headers cannot carry',
      }
    const own = key === undefined ? digest : keyDigest(key)
    if (own === undefined) continue
    if (seenDigests.has(own)) {
      const field = key === undefined ? 'digest' : 'key'
      yield { path: [...base, field], text: 'is the key of an earlier entry' }
    }
    seenDigests.add(own)
  }
}

function readTenantKey(entry: string): { id: string; key: string } {
  const colon = entry.indexOf(':')
  return { id: entry.slice(0, Math.max(colon, 0)), key: entry.slice(colon + 1) }
}

function isPadded(text: string): boolean {
  return text !== text.trim()
}
