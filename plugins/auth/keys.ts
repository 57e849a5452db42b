/** Reads the configured keys: syntax, duplicates and padding are settled here, at start-up. */
import type { Identity, Logger } from '#kernel'
import type { AuthConfig } from './config.ts'
import { authErrors } from './errors.ts'

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
 * @throws malformed_api_key, malformed_tenant_key or duplicate_tenant_key, which fail the boot
 * @source routes facts 5.1 (key syntaxes)
 */
export function readKeys(config: AuthConfig, log: Pick<Logger, 'warn'>): ConfiguredKeys {
  const shared = readSharedKey(config.apiKey)
  return {
    shared,
    tenants: readTenantKeys(config.tenantKeys, shared),
    controlPlane: readControlPlaneKeys(config.controlPlaneKeys, log),
    hasControlPlane: config.controlPlaneKeys.length > 0,
  }
}

function readSharedKey(key: string | null): ConfiguredKey | null {
  if (key === null) return null
  if (isPadded(key)) throw authErrors.malformed_api_key()
  return { key, identity: { tenant: 'auth:shared', role: null } }
}

function readTenantKeys(entries: readonly string[], shared: ConfiguredKey | null): ConfiguredKey[] {
  const seenIds = new Set<string>()
  const seenKeys = new Set<string>(shared === null ? [] : [shared.key])
  return entries.map((entry, index) => {
    const colon = entry.indexOf(':')
    const id = entry.slice(0, Math.max(colon, 0))
    const key = entry.slice(colon + 1)
    if (id === '' || key === '' || isPadded(id) || isPadded(key)) throw authErrors.malformed_tenant_key(index)
    if (seenIds.has(id) || seenKeys.has(key)) throw authErrors.duplicate_tenant_key(index)
    seenIds.add(id)
    seenKeys.add(key)
    return { key, identity: { tenant: `auth:${id}`, role: null } }
  })
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
