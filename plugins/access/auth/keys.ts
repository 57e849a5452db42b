/** Reads and checks the configured keys at startup. */
import type { Identity, Logger, SettingProblem } from '#kernel'
import type { AuthConfig } from './config.ts'

export interface ConfiguredKey {
  readonly key: string
  readonly identity: Identity
}

export interface ConfiguredKeys {
  /** Null if not configured. */
  readonly shared: ConfiguredKey | null
  readonly tenants: readonly ConfiguredKey[]
  /** Well-formed entries only. */
  readonly controlPlane: readonly ConfiguredKey[]
  /** True with any entry, valid or not, so that a list of invalid keys does not open the control plane. */
  readonly hasControlPlane: boolean
}

/**
 * Reads the section's keys.
 *
 * @throws Error for the first of `keyProblems`, so that an unchecked section never opens a route
 */
export function readKeys(config: AuthConfig, log: Pick<Logger, 'warn'>): ConfiguredKeys {
  for (const { path, text } of keyProblems(config)) throw new Error(`plugins.auth.${path.join('.')} ${text}`)
  const { apiKey } = config
  return {
    shared: apiKey === null ? null : { key: apiKey, identity: { tenant: 'auth:shared', role: null } },
    tenants: config.tenantKeys.map((entry) => {
      const { id, key } = readTenantKey(entry)
      return { key, identity: { tenant: `auth:${id}`, role: null } }
    }),
    controlPlane: readControlPlaneKeys(config.controlPlaneKeys, log),
    hasControlPlane: config.controlPlaneKeys.length > 0,
  }
}

/** The texts contain no key. */
export function* keyProblems({ apiKey, tenantKeys }: AuthConfig): Generator<SettingProblem> {
  if (apiKey !== null && isPadded(apiKey))
    yield { path: ['apiKey'], text: 'must not start or end with spaces, which request headers cannot carry' }
  const seenIds = new Set<string>()
  const seenKeys = new Set<string>(apiKey === null ? [] : [apiKey])
  for (const [index, entry] of tenantKeys.entries()) {
    const path = ['tenantKeys', String(index)]
    const { id, key } = readTenantKey(entry)
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) {
      const text = 'must be of the form tenant_id:key, both non-empty and without spaces at their ends'
      yield { path, text }
    } else if (seenIds.has(id) || seenKeys.has(key)) {
      yield { path, text: 'duplicates the tenant id or key of an earlier entry' }
    }
    seenIds.add(id)
    seenKeys.add(key)
  }
}

function readTenantKey(entry: string): { id: string; key: string } {
  const colon = entry.indexOf(':')
  return { id: entry.slice(0, Math.max(colon, 0)), key: entry.slice(colon + 1) }
}

function readControlPlaneKeys(entries: readonly string[], log: Pick<Logger, 'warn'>): ConfiguredKey[] {
  const keys: ConfiguredKey[] = []
  for (const [index, entry] of entries.entries()) {
    // Only the first three colons separate fields, so the key may contain colons.
    const [id = '', , role = '', ...rest] = entry.split(':')
    const key = rest.join(':')
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) {
      log.warn({ index }, 'control-plane key ignored: it must be of the form id:name:role:key')
      continue
    }
    // Any role other than admin is treated as user.
    const isAdmin = role.trim().toLowerCase() === 'admin'
    keys.push({ key, identity: { tenant: `auth:${id}`, role: isAdmin ? 'admin' : 'user' } })
  }
  return keys
}

function isPadded(text: string): boolean {
  return text !== text.trim()
}
