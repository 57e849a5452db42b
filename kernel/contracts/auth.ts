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
  /** Of a token: milliseconds since 1970. Absent for keys. */
  readonly expiresAtMs?: number
  /** Models that the key may use, by the names that clients send. Absent: all. */
  readonly models?: ReadonlySet<string>
  /** Endpoint labels of the routes that the key opens, as `RouteFacts.endpoint`. Absent: all. */
  readonly routes?: ReadonlySet<string>
}

/** Credentials of a request; undefined if absent. */
export interface Credentials {
  readonly authorization: string | undefined
  /** `x-api-key`, on routes that accept it. */
  readonly apiKey: string | undefined
  /** Set by `check` if it finds a key of the gateway in `authorization`, so that a request hashes its key once. */
  isGatewayKey?: boolean
}

/** Checks the access of requests. */
export interface AuthService {
  /**
   * Authorises a request; synchronous if possible.
   * @param access `operator` accepts keys of the control plane with any role
   * @throws invalid_api_key, invalid_token, credential_expired (401), insufficient_role (403) or keys_unavailable (503) from the auth
   *   error table
   */
  check(
    access: Exclude<Access, 'public'> | 'operator',
    credentials: Credentials,
  ): Identity | Promise<Identity>
  /**
   * Checks the key of a caller again: for the next message of an open connection, and for work that starts later.
   * @param identity from `check`
   * @returns the owner with the current restrictions of the key
   * @throws as `check`, for a key that has expired or was revoked since. A key without an id counts as valid while its owner has
   *   one, and a token until it expires; work that starts later does not know the expiry of its token
   */
  recheck(identity: Identity): Identity
  /** Owner of a valid serving key, for public routes that show less to restricted keys; null for any other credential. */
  ownerOf(credentials: Credentials): Identity | null
  /** True if an Authorization header contains a key of the gateway, which must not be forwarded. */
  isGatewayKey(authorization: string): boolean
}

/** The service that checks the access of requests. */
export const Auth = token<AuthService>('auth')

/** Sessions of browsers: a cookie in place of the `authorization` header. */
export interface SessionService {
  /**
   * Checks the session of a control-plane request without `authorization`.
   * @returns null without a cookie of a session
   * @throws as `AuthService.check`, and if the request may come from a page of another origin
   */
  identify(request: {
    readonly method: string
    header(name: string): string | undefined
  }): Identity | Promise<Identity> | null
}

export const Sessions = token<SessionService>('sessions')

/** What a key may do, and how long. */
export interface KeyScope {
  /** Milliseconds since 1970; null for keys that do not expire. */
  readonly expiresAtMs: number | null
  /** As in `Identity`; null allows all. */
  readonly models: readonly string[] | null
  readonly routes: readonly string[] | null
}

/** A key that is kept as its digest. Plain data, so that it can be published to every thread. */
export interface KeyRecord extends KeyScope {
  readonly id: string
  /** SHA-256 of the key, lower-case hex. */
  readonly digest: string
  /** As `Identity.tenant`. */
  readonly tenant: string
  /** Null opens the serving routes, a role the control plane. */
  readonly role: 'admin' | 'user' | null
}

/** A key of the configuration, without the key and its digest. */
export interface ConfiguredKey extends KeyScope {
  /** As `Identity.keyId`; null for keys without an id. */
  readonly id: string | null
  /** Null without one. */
  readonly name: string | null
  /** Path of its setting, such as `plugins.auth.keys.0`. */
  readonly setting: string
  /** As `Identity.tenant`. */
  readonly owner: string
  /** Whether it opens the serving routes. */
  readonly isServing: boolean
  /** Role on the control plane; null for keys that do not open it. */
  readonly role: 'admin' | 'user' | null
}

/** Accepts keys that are not in the configuration. */
export interface KeyRing {
  /** Whether the configuration has a credential that opens the control plane. */
  readonly hasAdmin: boolean
  /** The keys of the configuration, in the order of its settings; replaced by a reload. */
  readonly configured: readonly ConfiguredKey[]
  /** Generates a key. Its form is recognised while the records are unknown. @returns the key and `KeyRecord.digest` */
  generate(): { readonly key: string; readonly digest: string }
  /**
   * Replaces the added keys on this thread. From the first call on, no route is open without a credential.
   * @param records null while they are unknown: generated keys are then rejected with keys_unavailable (503)
   */
  useStored(records: readonly KeyRecord[] | null): void
}

export const Keys = token<KeyRing>('key-ring')
