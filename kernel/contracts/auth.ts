/** The auth contract: authenticates a caller and authorises it for a class of routes. */
import { token } from './token.ts'

/** Permitted callers: anyone, holders of an API key, holders of an admin key. */
export type Access = 'public' | 'api' | 'admin'

/** Tenant of callers without an identity, on routes that require no key. */
export const ANONYMOUS_TENANT = 'anonymous'

/** Tenant that a request counts for. */
export function tenantOf({ identity }: { readonly identity: Identity | null }): string {
  return identity?.tenant ?? ANONYMOUS_TENANT
}

/** An authenticated caller. */
export interface Identity {
  /** Stable name for limits and stored records, such as `auth:team-a`; never a secret. */
  readonly tenant: string
  /** Null if no key is configured, so that the route is open. */
  readonly role: 'admin' | 'user' | null
  /** Id of the key, unique in its tenant; never a secret. Absent for keys without an id and for tokens. */
  readonly keyId?: string
}

/** Credentials of a request; undefined if absent. */
export interface Credentials {
  readonly authorization: string | undefined
  /** `x-api-key`, on routes that accept it. */
  readonly apiKey: string | undefined
}

export interface AuthService {
  /**
   * Authorises a request; synchronous if possible.
   * @throws invalid_credential (401) or insufficient_role (403) from the auth error table
   */
  check(access: Exclude<Access, 'public'>, credentials: Credentials): Identity | Promise<Identity>
  /** True if an Authorization header contains a key of the gateway, which must not be forwarded. */
  isGatewayKey(authorization: string): boolean
}

export const Auth = token<AuthService>('auth')
