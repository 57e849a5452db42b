/** Names of tenants in settings and queries: the forms in which requests have them. */
import { isIP } from 'node:net'
import { ANONYMOUS_TENANT, canonicalAddress } from '#kernel'

const ADDRESS = 'ip:'
const PREFIX = /^(?:auth|jwt|header|ip)(?::|$)/
/** Groups of an IPv6 address that name a network of 64 bits, the smallest one that providers assign to a client. */
const NETWORK_GROUPS = 4
const NETWORK = '/64'

export const TENANT_FORMS = 'auth:<id>, jwt:<claim>, header:<value>, ip:<address> or anonymous'

/** The tenant of an address without credentials: IPv6 addresses of one /64 are one client. @param address canonical */
export function tenantOfAddress(address: string): string {
  if (!address.includes(':')) return ADDRESS + address
  const [head, tail] = address.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = tail === undefined ? 0 : 8 - head.length - tail.length
  const groups = [...head, ...Array<string>(zeros).fill('0'), ...(tail ?? [])].slice(0, NETWORK_GROUPS)
  return `${ADDRESS}${canonicalAddress(`${groups.join(':')}::`)}${NETWORK}`
}

/** Whether the name has a form that requests can have. */
export function isTenantName(name: string): boolean {
  if (name.startsWith(ADDRESS)) return isIP(addressIn(name)) !== 0
  return name === ANONYMOUS_TENANT || /^(auth|jwt|header):./.test(name)
}

/** Normalizes a configured tenant name: an IPv6 address stands for its network. */
export function toTenant(name: string): string {
  return name.startsWith(ADDRESS) ? tenantOfAddress(canonicalAddress(addressIn(name))) : name
}

/** Ids of the configuration become `auth:<id>`; those that would be read as something else are reserved. */
export function tenantIdProblem(id: string): string | null {
  if (id === 'shared') return 'is reserved: it is the tenant of plugins.auth.apiKey'
  return PREFIX.test(id)
    ? `must not begin with a prefix of tenant names (got ${id.slice(0, 80)}): requests have the tenant auth:<id>`
    : null
}

function addressIn(name: string): string {
  const address = name.slice(ADDRESS.length)
  return address.includes(':') && address.endsWith(NETWORK) ? address.slice(0, -NETWORK.length) : address
}
