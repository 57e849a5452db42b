/** Small helpers for untyped values. */
import type { RequestContext } from '#kernel'

/** Whether the value is an object; false for null and arrays. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The message of a thrown value. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Tenant of requests without credentials. */
export const ANONYMOUS_TENANT = 'anonymous'

/** Tenant of the request's credential. */
export function tenantOf({ identity }: Pick<RequestContext, 'identity'>): string {
  return identity?.tenant ?? ANONYMOUS_TENANT
}
