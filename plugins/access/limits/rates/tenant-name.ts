/** Resolves the tenant of a request: owner of the credential, trusted tenant header, or client address. */
import { ANONYMOUS_TENANT, canonicalAddress, type RequestContext } from '#kernel'

const ADDRESS = 'ip:'
/** Longer header values are ignored. */
const MAX_NAME_LENGTH = 256

export interface TenantNaming {
  readonly trustTenantHeader: boolean
  readonly tenantHeaderName: string
}

export function tenantOf(ctx: RequestContext, naming: TenantNaming): string {
  const known = ctx.identity?.tenant
  if (known !== undefined && known !== ANONYMOUS_TENANT) return known
  if (naming.trustTenantHeader) {
    const name = ctx.header(naming.tenantHeaderName)
    if (name !== undefined && name !== '' && name.length <= MAX_NAME_LENGTH) return `header:${name}`
  }
  return ctx.clientAddress === '' ? ANONYMOUS_TENANT : `${ADDRESS}${ctx.clientAddress}`
}

/** Whether the name has a form that `tenantOf` returns. */
export function isTenantName(name: string): boolean {
  return name === ANONYMOUS_TENANT || /^(auth|jwt|header|ip):./.test(name)
}

/** Normalizes a configured tenant name: addresses to their canonical form, as `tenantOf` returns them. */
export function toTenant(name: string): string {
  return name.startsWith(ADDRESS) ? ADDRESS + canonicalAddress(name.slice(ADDRESS.length)) : name
}
