/** The Auth contract over keys and tokens. @hot */
import { randomBytes } from 'node:crypto'
import {
  type Access,
  ANONYMOUS_TENANT,
  type AuthService,
  type ConfiguredKey,
  type Credentials,
  type Identity,
  type KeyRecord,
  type KeyRing,
  retryAfter,
} from '#kernel'
import { authErrors } from './errors.ts'
import { type Grant, type KeyGrants, KeyTable, keyDigest, type TableKey, toTableKey } from './key-table.ts'
import type { ConfiguredKeys, FileKey } from './keys.ts'
import type { TokenVerifier } from './tokens.ts'

const ANONYMOUS: Identity = Object.freeze({ tenant: ANONYMOUS_TENANT, role: null })
const SCHEME = 'Bearer '
/** Prefix of tenants whose credential is a key. */
const KEY_OWNER = 'auth:'
const SERVING_CHALLENGE = ['www-authenticate', 'Bearer']
const ADMIN_CHALLENGE = ['www-authenticate', 'Bearer realm="control-plane"']

/** Prefix of generated keys, by which secret scanners find them. */
const PREFIX = 'weir_'
const KEY_BYTES = 32
const GENERATED_KEY = /^weir_[\w-]{43}$/
/** Hint for clients whose keys are unknown until the store is back. */
const UNAVAILABLE_RETRY_S = 5

/**
 * Checks keys of the configuration, keys of the store, and tokens of the configured issuer.
 *
 * Serving routes accept the shared key and keys of tenants. The control plane accepts keys of operators with role admin; the
 * shared key too if the configuration has no operator. Tokens are accepted on serving routes, tokens with role admin also on the
 * control plane. Every route is open only if no credential of any kind is configured and there is no store of keys. Keys are
 * checked first, so that they never wait for the issuer.
 */
export class KeyAuth implements AuthService, KeyRing {
  hasAdmin = false
  #table = new KeyTable()
  /** Keys with an id, by `ownerKey`. */
  #byId: ReadonlyMap<string, Grant> = new Map()
  /** Tenants that have a key. */
  #owners: ReadonlySet<string | undefined> = new Set()
  #configured: readonly FileKey[] = []
  /** Null while they are unknown; undefined without a store of keys. */
  #stored: readonly TableKey[] | null | undefined = undefined
  #hasCredentials = false
  readonly #tokens: TokenVerifier | null

  constructor(keys: ConfiguredKeys, tokens: TokenVerifier | null = null) {
    this.#tokens = tokens
    this.use(keys)
  }

  /** Later checks use these keys of the configuration. */
  use({ keys, hasCredentials }: ConfiguredKeys): void {
    this.#configured = keys
    this.#hasCredentials = hasCredentials
    this.hasAdmin = this.#tokens !== null || keys.some(({ admin }) => admin !== null && mayAdminister(admin))
    this.#rebuild()
  }

  /** @throws open_after_reload if these keys would open routes that are closed */
  assertStaysClosed({ hasCredentials }: Pick<ConfiguredKeys, 'hasCredentials'>): void {
    if (this.#hasCredentials && !hasCredentials && this.#stored === undefined)
      throw authErrors.open_after_reload()
  }

  get configured(): readonly ConfiguredKey[] {
    return this.#configured.map(({ shown }) => shown)
  }

  useStored(records: readonly KeyRecord[] | null): void {
    this.#stored = records === null ? null : records.map(storedKey)
    this.#rebuild()
  }

  #rebuild(): void {
    this.#table = new KeyTable(this.#configured, this.#stored ?? [])
    const keys = [...this.#configured, ...(this.#stored ?? [])]
    this.#byId = grantsById(keys)
    this.#owners = new Set(keys.map(({ serving, admin }) => (serving ?? admin)?.identity.tenant))
  }

  get #isOpen(): boolean {
    return !this.#hasCredentials && this.#stored === undefined
  }

  generate(): { key: string; digest: string } {
    const key = PREFIX + randomBytes(KEY_BYTES).toString('base64url')
    return { key, digest: keyDigest(key) }
  }

  check(
    access: Exclude<Access, 'public'> | 'operator',
    credentials: Credentials,
  ): Identity | Promise<Identity> {
    return access === 'api' ? this.#checkServing(credentials) : this.#checkControl(access, credentials)
  }

  recheck(identity: Identity): Identity {
    if (identity.keyId === undefined) {
      const { tenant } = identity
      this.#tokens?.recheck(identity)
      if (tenant.startsWith(KEY_OWNER) && !this.#owners.has(tenant)) throw authErrors.invalid_api_key()
      return identity
    }
    const grant = this.#byId.get(ownerKey(identity))
    if (grant !== undefined) return identityOf(grant)
    if (this.#stored === null) throw authErrors.keys_unavailable.with(retryAfter(UNAVAILABLE_RETRY_S))
    throw authErrors.invalid_api_key()
  }

  ownerOf({ authorization, apiKey }: Credentials): Identity | null {
    for (const key of [bearerOf(authorization), apiKey]) {
      const grant = key === undefined ? null : (this.#table.find(key)?.serving ?? null)
      if (grant !== null && Date.now() < grant.expiresAtMs) return grant.identity
    }
    return null
  }

  isGatewayKey(authorization: string): boolean {
    if (this.#isOpen) return false
    // Wider than `check`: a key must not leak because its scheme is missing.
    const key = (bearerOf(authorization) ?? authorization).trim()
    // Also generated keys that were revoked, or that are not known yet.
    return this.#table.find(key) !== undefined || GENERATED_KEY.test(key) || this.#tokens?.isOwn(key) === true
  }

  #checkServing(credentials: Credentials): Identity | Promise<Identity> {
    if (this.#isOpen) return ANONYMOUS
    const { authorization, apiKey } = credentials
    const bearer = bearerOf(authorization)
    const ofBearer = this.#find(bearer)
    if (ofBearer !== undefined) credentials.isGatewayKey = true
    const found = ofBearer?.serving ?? this.#find(apiKey)?.serving
    if (found) return identityOf(found)
    const token = this.#tokenIn(bearer)
    if (token !== null) return token
    this.#rejectUnknown(bearer, apiKey)
    throw authErrors.invalid_api_key.with({ headers: SERVING_CHALLENGE })
  }

  /** Tokens need role admin for either: those without it belong to clients of the serving routes. */
  #checkControl(access: 'admin' | 'operator', { authorization }: Credentials): Identity | Promise<Identity> {
    if (this.#isOpen) return ANONYMOUS
    const bearer = bearerOf(authorization)
    const found = this.#find(bearer)?.admin
    if (!found) {
      const token = this.#tokenIn(bearer)
      if (token !== null) return token.then(passAdmin)
      this.#rejectUnknown(bearer, undefined)
      throw authErrors.invalid_api_key.with({ headers: ADMIN_CHALLENGE })
    }
    // The cause identifies the caller for the audit log; it is not sent to the client.
    if (access === 'admin' && !mayAdminister(found))
      throw authErrors.insufficient_role.with({ cause: found.identity })
    return identityOf(found)
  }

  #find(key: string | undefined): KeyGrants | undefined {
    return key === undefined ? undefined : this.#table.find(key)
  }

  /** @throws keys_unavailable for keys that the store may have */
  #rejectUnknown(bearer: string | undefined, apiKey: string | undefined): void {
    if (this.#stored !== null) return
    if (GENERATED_KEY.test(bearer ?? '') || GENERATED_KEY.test(apiKey ?? ''))
      throw authErrors.keys_unavailable.with(retryAfter(UNAVAILABLE_RETRY_S))
  }

  /** Null if the credential is no token. */
  #tokenIn(bearer: string | undefined): Promise<Identity> | null {
    if (this.#tokens === null || bearer === undefined) return null
    return this.#tokens.looksLikeToken(bearer) ? this.#tokens.verify(bearer) : null
  }
}

/** A tenant's key opens the serving routes, that of an operator the control plane. */
function storedKey({ digest, tenant: owner, ...key }: KeyRecord): TableKey {
  return toTableKey(digest, { ...key, owner, isServing: key.role === null })
}

function grantsById(keys: readonly TableKey[]): ReadonlyMap<string, Grant> {
  const grants = new Map<string, Grant>()
  for (const { serving, admin } of keys) {
    const grant = serving ?? admin
    if (grant?.identity.keyId !== undefined) grants.set(ownerKey(grant.identity), grant)
  }
  return grants
}

/** Ids are unique per owner, also between the configuration and the store. */
function ownerKey({ tenant, keyId, role }: Identity): string {
  return JSON.stringify([tenant, keyId, role])
}

/** The role of the shared key is null; it is granted the control plane only without keys of operators. */
function mayAdminister({ identity }: Grant): boolean {
  return identity.role !== 'user'
}

/** @throws credential_expired */
function identityOf({ identity, expiresAtMs }: Grant): Identity {
  if (expiresAtMs === Number.POSITIVE_INFINITY || Date.now() < expiresAtMs) return identity
  const headers = [
    'www-authenticate',
    'Bearer error="invalid_token", error_description="the key has expired"',
  ]
  throw authErrors.credential_expired.with({ headers, cause: identity }, expiresAtMs)
}

function passAdmin(found: Identity): Identity {
  if (found.role !== 'admin') throw authErrors.insufficient_role.with({ cause: found })
  return found
}

/** The credential of an Authorization header of the scheme Bearer, in any case. @source RFC 9110 section 11.1 */
function bearerOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  const isBearer =
    authorization.startsWith(SCHEME) || authorization.slice(0, SCHEME.length).toLowerCase() === 'bearer '
  return isBearer ? authorization.slice(SCHEME.length) : undefined
}
