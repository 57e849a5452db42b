/** Reads and checks the configured keys at startup. */
import type { ConfiguredKey, Identity, Logger, SettingProblem } from '#kernel'
import { keyEntryProblems, toKeyRecord } from '#shared'
import type { AuthConfig } from './config.ts'
import { type Grant, keyDigest, type TableKey, toTableKey } from './key-table.ts'

export interface FileKey extends TableKey {
  /** For listings. */
  readonly shown: ConfiguredKey
}

export interface ConfiguredKeys {
  readonly keys: readonly FileKey[]
  /** True with any entry, valid or not, so that a list of invalid keys does not open the control plane. */
  readonly hasControlPlane: boolean
}

const SECTION = 'plugins.auth'
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
  const shared = apiKey === null ? [] : [sharedKey(apiKey, hasControlPlane)]
  const tenants = config.tenantKeys.map((entry, index): FileKey => {
    const { id, key } = readTenantKey(entry)
    const owner = `auth:${id}`
    const shown = { ...PLAIN, setting: `${SECTION}.tenantKeys.${index}`, owner, isServing: true, role: null }
    return { ...tableKey(key, grantOf({ tenant: owner, role: null }), null), shown }
  })
  const listed = keys.map(listedKey)
  const operators = readControlPlaneKeys(config.controlPlaneKeys, log)
  return { keys: [...shared, ...tenants, ...listed, ...operators], hasControlPlane }
}

function sharedKey(key: string, hasControlPlane: boolean): FileKey {
  const owner = 'auth:shared'
  const grant = grantOf({ tenant: owner, role: null })
  const role = hasControlPlane ? null : 'admin'
  const shown = { ...PLAIN, setting: `${SECTION}.apiKey`, owner, isServing: true, role } as const
  return { ...tableKey(key, grant, role === null ? null : grant), shown }
}

function listedKey(entry: AuthConfig['keys'][number], index: number): FileKey {
  const { id, key, digest: given } = entry
  const record = toKeyRecord(id, key === undefined ? (given ?? '') : keyDigest(key), entry)
  const { tenant: owner, digest: _, ...members } = record
  const setting = `${SECTION}.keys.${index}`
  return {
    ...toTableKey(record),
    shown: { ...members, name: null, setting, owner, isServing: record.role === null },
  }
}

function tableKey(key: string, serving: Grant | null, admin: Grant | null): TableKey {
  return { digest: keyDigest(key), serving, admin }
}

function grantOf(identity: Identity): Grant {
  return { identity, expiresAtMs: Number.POSITIVE_INFINITY }
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

function readControlPlaneKeys(entries: readonly string[], log: Pick<Logger, 'warn'>): FileKey[] {
  const keys: FileKey[] = []
  for (const [index, entry] of entries.entries()) {
    // Only the first three colons separate fields, so the key may contain colons.
    const [id = '', name = '', roleName = '', ...rest] = entry.split(':')
    const key = rest.join(':')
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) {
      log.warn({ index }, 'control-plane key ignored: it must be of the form id:name:role:key')
      continue
    }
    // Any role other than admin is treated as user.
    const role = roleName.trim().toLowerCase() === 'admin' ? 'admin' : 'user'
    const owner = `auth:${id}`
    const setting = `${SECTION}.controlPlaneKeys.${index}`
    const shown = {
      ...PLAIN,
      name: name === '' ? null : name,
      setting,
      owner,
      isServing: false,
      role,
    } as const
    keys.push({ ...tableKey(key, null, grantOf({ tenant: owner, role })), shown })
  }
  return keys
}

function isPadded(text: string): boolean {
  return text !== text.trim()
}
