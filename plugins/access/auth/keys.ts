/** Reads the configured keys: syntax, duplicates and padding are settled here, at start-up. */
import type { Identity, Logger, SettingProblem } from '#kernel'
import type { AuthConfig } from './config.ts'

/** One configured key and whom it stands for. */
export interface ConfiguredKey {
  readonly key: string
  readonly identity: Identity
}

export interface ConfiguredKeys {
  /** Null when none is configured. */
  readonly shared: ConfiguredKey | null
  readonly tenants: readonly ConfiguredKey[]
  /** Well-formed entries only. */
  readonly controlPlane: readonly ConfiguredKey[]
  /** True with any entry, well-formed or not: a list of nothing but mistakes must not open the control plane. */
  readonly hasControlPlane: boolean
}

/**
 * Reads the section's keys.
 *
 * @throws Error for those of `keyProblems`: not even a section that nobody checked leaves a plane open
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

/** Names no key. */
export function* keyProblems({ apiKey, tenantKeys }: AuthConfig): Generator<SettingProblem> {
  if (apiKey !== null && isPadded(apiKey))
    yield { path: ['apiKey'], text: 'has blanks at its ends, which no request header can carry' }
  const seenIds = new Set<string>()
  const seenKeys = new Set<string>(apiKey === null ? [] : [apiKey])
  for (const [index, entry] of tenantKeys.entries()) {
    const path = ['tenantKeys', String(index)]
    const { id, key } = readTenantKey(entry)
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) {
      const text = 'is not of the form tenant_id:key, both non-empty and without blanks at their ends'
      yield { path, text }
    } else if (seenIds.has(id) || seenKeys.has(key)) {
      yield { path, text: 'repeats a tenant id or a key that came before' }
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
    // Only the first three colons part the fields, so a key may hold colons of its own.
    const [id = '', , role = '', ...rest] = entry.split(':')
    const key = rest.join(':')
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) {
      log.warn({ index }, 'a control-plane key is not of the form id:name:role:key and was skipped')
      continue
    }
    // Whatever is not spelled admin gets the lesser role.
    const isAdmin = role.trim().toLowerCase() === 'admin'
    keys.push({ key, identity: { tenant: `auth:${id}`, role: isAdmin ? 'admin' : 'user' } })
  }
  return keys
}

function isPadded(text: string): boolean {
  return text !== text.trim()
}
