/** Resolves the tenant of a request: owner of the credential, trusted tenant header, or client address. */
import { ANONYMOUS_TENANT, type RequestContext } from '#kernel'
import { tenantOfAddress } from '#shared'

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
  return ctx.clientAddress === '' ? ANONYMOUS_TENANT : tenantOfAddress(ctx.clientAddress)
}
