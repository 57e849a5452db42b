/** The Auth contract over configured keys and tokens. @hot */
import type { Access, AuthService, Credentials, Identity } from '#kernel'
import { ANONYMOUS_TENANT } from '#kernel'
import { authErrors } from './errors.ts'
import { KeyTable } from './key-table.ts'
import type { ConfiguredKeys } from './keys.ts'
import type { TokenVerifier } from './tokens.ts'

const ANONYMOUS: Identity = Object.freeze({ tenant: ANONYMOUS_TENANT, role: null })
const NO_KEYS = new KeyTable()
const BEARER = 'Bearer '
const CHALLENGE = ['www-authenticate', 'Bearer realm="control-plane"']

/**
 * Checks configured keys, and tokens of the configured issuer.
 *
 * Serving routes accept the shared key and tenant keys, and are open if neither is configured. The control plane accepts
 * control-plane keys of role admin if any is configured, else the shared key; without keys it is open, unless tenant keys
 * exist, which closes it. With an issuer, nothing is open: its tokens are accepted on serving routes, tokens with role
 * admin also on the control plane. Keys are checked first, so that they never wait for the issuer.
 */
export class KeyAuth implements AuthService {
  #serving = NO_KEYS
  #admin = NO_KEYS
  #own = NO_KEYS
  #isServingOpen = false
  #isAdminOpen = false
  #adminNeedsRole = false
  readonly #tokens: TokenVerifier | null

  constructor(keys: ConfiguredKeys, tokens: TokenVerifier | null = null) {
    this.#tokens = tokens
    this.use(keys)
  }

  /** Later checks use these keys. */
  use(keys: ConfiguredKeys): void {
    const shared = keys.shared === null ? [] : [keys.shared]
    this.#serving = new KeyTable(shared, keys.tenants)
    this.#admin = keys.hasControlPlane ? new KeyTable(keys.controlPlane) : new KeyTable(shared)
    this.#own = new KeyTable(shared, keys.tenants, keys.controlPlane)
    this.#isServingOpen = this.#serving.size === 0 && this.#tokens === null
    this.#isAdminOpen = this.#isServingOpen && !keys.hasControlPlane
    this.#adminNeedsRole = keys.hasControlPlane
  }

  check(access: Exclude<Access, 'public'>, credentials: Credentials): Identity | Promise<Identity> {
    return access === 'api' ? this.#checkServing(credentials) : this.#checkAdmin(credentials)
  }

  isGatewayKey(authorization: string): boolean {
    if (this.#own.size === 0 && this.#tokens === null) return false
    // Wider than `check`: a key must not leak because its scheme was misspelled or missing.
    const isBearer = authorization.slice(0, BEARER.length).toLowerCase() === 'bearer '
    const key = (isBearer ? authorization.slice(BEARER.length) : authorization).trim()
    return this.#own.find(key) !== undefined || this.#tokens?.isOwn(key) === true
  }

  #checkServing(credentials: Credentials): Identity | Promise<Identity> {
    if (this.#isServingOpen) return ANONYMOUS
    const found = findBearer(this.#serving, credentials.authorization)
    if (found !== undefined) return found
    if (credentials.apiKey !== undefined) {
      const owner = this.#serving.find(credentials.apiKey)
      if (owner !== undefined) return owner
    }
    const token = this.#tokenIn(credentials.authorization)
    if (token !== null) return token.then(passServing)
    throw authErrors.invalid_credential()
  }

  #checkAdmin(credentials: Credentials): Identity | Promise<Identity> {
    if (this.#isAdminOpen) return ANONYMOUS
    const found = findBearer(this.#admin, credentials.authorization)
    if (found === undefined) {
      const token = this.#tokenIn(credentials.authorization)
      if (token !== null) return token.then(passAdmin)
      throw authErrors.invalid_credential.with({ headers: CHALLENGE })
    }
    if (this.#adminNeedsRole && found.role !== 'admin') {
      // The cause identifies the caller for the audit log; it is not sent to the client.
      throw authErrors.insufficient_role.with({ cause: found })
    }
    return found
  }

  /** Null if the request has no token. */
  #tokenIn(authorization: string | undefined): Promise<Identity | null> | null {
    if (this.#tokens === null || authorization === undefined || !authorization.startsWith(BEARER)) return null
    const token = authorization.slice(BEARER.length)
    return this.#tokens.looksLikeToken(token) ? this.#tokens.verify(token) : null
  }
}

function passServing(found: Identity | null): Identity {
  if (found === null) throw authErrors.invalid_credential()
  return found
}

function passAdmin(found: Identity | null): Identity {
  if (found === null) throw authErrors.invalid_credential.with({ headers: CHALLENGE })
  if (found.role !== 'admin') throw authErrors.insufficient_role.with({ cause: found })
  return found
}

function findBearer(table: KeyTable, authorization: string | undefined): Identity | undefined {
  if (authorization === undefined || !authorization.startsWith(BEARER)) return undefined
  return table.find(authorization.slice(BEARER.length))
}
