/** Who a request counts for: the owner of its key or token, a trusted header, its address, or nobody in particular. */
import { canonicalAddress, type RequestContext } from '#kernel'

const ANONYMOUS = 'anonymous'
const ADDRESS = 'ip:'
/** Longer names in a header are no names. */
const MAX_NAME_LENGTH = 256

export interface TenantNaming {
  readonly trustTenantHeader: boolean
  readonly tenantHeaderName: string
}

export function tenantOf(ctx: RequestContext, naming: TenantNaming): string {
  const known = ctx.identity?.tenant
  if (known !== undefined && known !== ANONYMOUS) return known
  if (naming.trustTenantHeader) {
    const name = ctx.header(naming.tenantHeaderName)
    if (name !== undefined && name !== '' && name.length <= MAX_NAME_LENGTH) return `header:${name}`
  }
  return ctx.clientAddress === '' ? ANONYMOUS : `${ADDRESS}${ctx.clientAddress}`
}

/** Of the form that `tenantOf` gives. */
export function isTenantName(name: string): boolean {
  return name === ANONYMOUS || /^(auth|jwt|header|ip):./.test(name)
}

/** As `tenantOf` gives it, where an operator may write an address in any of its forms. */
export function toTenant(name: string): string {
  return name.startsWith(ADDRESS) ? ADDRESS + canonicalAddress(name.slice(ADDRESS.length)) : name
}
