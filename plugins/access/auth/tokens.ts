/** Verifies JSON Web Tokens of one issuer: signature by the issuer's published keys, issuer, audience, times, claims. */
import type { FetchImplementation, JWTPayload, JWTVerifyGetKey } from 'jose'
import type { Identity, Logger, SettingProblem } from '#kernel'
import { isSecureUrl } from '#shared'
import type { JwtConfig } from './config.ts'
import { authErrors } from './errors.ts'
import { RefusalLog } from './refusal-log.ts'

/** Three base64url parts with a non-empty signature; unsigned tokens are not tokens. */
const SIGNED_TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** Maximum size of a key set, in bytes. */
const MAX_KEY_SET_BYTES = 1 << 20
/** Maximum characters of a tenant; longer ones are rejected, because tenants are stored and logged. */
const MAX_TENANT_LENGTH = 256

type Jose = typeof import('jose')

export function* jwtProblems({ jwksUrl }: JwtConfig): Generator<SettingProblem> {
  const url = URL.parse(jwksUrl)
  if (url === null || !isSecureUrl(url))
    yield { path: ['jwt', 'jwksUrl'], text: 'must be an https URL, or an http URL on loopback' }
}

/**
 * The key set is fetched with the first token and cached. A token with an unknown key id causes another fetch, at most
 * one per `refetchMs`; a failed fetch is not repeated for the same time.
 */
export class TokenVerifier {
  readonly #config: JwtConfig
  /** Loaded lazily, because it takes memory in each thread. */
  readonly #jose = import('jose')
  readonly #keySet: URL
  readonly #refusals: RefusalLog
  #keys: JWTVerifyGetKey | null = null

  /** @throws Error if the key set would be fetched over an insecure connection */
  constructor(config: JwtConfig, log: Pick<Logger, 'info'>) {
    this.#config = config
    this.#refusals = new RefusalLog(log)
    for (const { path, text } of jwtProblems(config))
      throw new Error(`plugins.auth.${path.join('.')} ${text}`)
    this.#keySet = new URL(config.jwksUrl)
    // Reported when a token is verified.
    this.#jose.catch(() => {})
  }

  /** Whether the text has the form of a signed token of any issuer. */
  looksLikeToken(text: string): boolean {
    return SIGNED_TOKEN.test(text)
  }

  /** Whether the token names this issuer, valid or not; such tokens are not forwarded. */
  isOwn(text: string): boolean {
    if (!SIGNED_TOKEN.test(text)) return false
    try {
      const claims: unknown = JSON.parse(Buffer.from(text.split('.')[1], 'base64url').toString())
      return (claims as JWTPayload | null)?.iss === this.#config.issuer
    } catch {
      return false
    }
  }

  /** @throws invalid_token with the reason, identity_keys_unavailable if it cannot be verified */
  async verify(token: string): Promise<Identity> {
    const jose = await this.#jose
    this.#keys ??= this.#openKeys(jose)
    const payload = await this.#payloadOf(token, jose, this.#keys)
    return this.#identityOf(payload) ?? this.#reject('the tenant claim is missing or invalid')
  }

  /** @throws invalid_token if the token of the identity has expired since */
  recheck({ expiresAtMs = Number.POSITIVE_INFINITY }: Identity): void {
    if (Date.now() >= expiresAtMs) this.#reject(EXPIRED)
  }

  async #payloadOf(token: string, jose: Jose, keys: JWTVerifyGetKey): Promise<JWTPayload> {
    const { issuer, audience, algorithms, clockSkewMs } = this.#config
    try {
      const { payload } = await jose.jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms,
        clockTolerance: clockSkewMs / 1000,
        requiredClaims: ['exp'],
      })
      return payload
    } catch (error) {
      const reason = reasonOf(error, jose.errors)
      if (reason !== null) return this.#reject(reason)
      throw authErrors.identity_keys_unavailable.with({ cause: error })
    }
  }

  /** @source RFC 6750 section 3 */
  #reject(reason: string): never {
    this.#refusals.add(reason)
    const challenge = `Bearer error="invalid_token", error_description="${reason}"`
    throw authErrors.invalid_token.with({ headers: ['www-authenticate', challenge] }, reason)
  }

  #openKeys({ createRemoteJWKSet, customFetch }: Jose): JWTVerifyGetKey {
    const { timeoutMs, refetchMs, cacheMs } = this.#config
    return createRemoteJWKSet(this.#keySet, {
      timeoutDuration: timeoutMs,
      cooldownDuration: refetchMs,
      cacheMaxAge: cacheMs,
      [customFetch]: patientFetch(refetchMs),
    })
  }

  #identityOf(payload: JWTPayload): Identity | null {
    const { tenantClaim, roleClaim, adminRole, clockSkewMs } = this.#config
    const tenant = Object.hasOwn(payload, tenantClaim) ? payload[tenantClaim] : undefined
    if (typeof tenant !== 'string' || tenant === '' || tenant.length > MAX_TENANT_LENGTH) return null
    if (/\p{Cc}/u.test(tenant)) return null
    const roles = Object.hasOwn(payload, roleClaim) ? payload[roleClaim] : undefined
    const isAdmin =
      typeof roles === 'string'
        ? roles.split(' ').includes(adminRole)
        : Array.isArray(roles) && roles.includes(adminRole)
    // Prefixed, so that a claim cannot name the tenant of a key.
    // `exp` is required.
    const expiresAtMs = Number(payload.exp) * 1000 + clockSkewMs
    return { tenant: `jwt:${tenant}`, role: isAdmin ? 'admin' : 'user', expiresAtMs }
  }
}

const EXPIRED = 'it has expired'
/** Texts for the claims that are checked, which need no quoting in a header. */
const CLAIM_REASONS: ReadonlyMap<string, string> = new Map([
  ['iss', 'the issuer is not the configured one'],
  ['aud', 'the audience is not the configured one'],
  ['nbf', 'it is not valid yet'],
  ['exp', 'it has no valid exp claim'],
])

/** Why a token is rejected; null for other errors, which are failures to fetch the key set. */
function reasonOf(error: unknown, jose: Jose['errors']): string | null {
  if (error instanceof jose.JWTExpired) return EXPIRED
  if (error instanceof jose.JWTClaimValidationFailed)
    return CLAIM_REASONS.get(error.claim) ?? 'a claim is invalid'
  if (error instanceof jose.JWSSignatureVerificationFailed) return 'the signature is wrong'
  if (error instanceof jose.JOSEAlgNotAllowed) return 'the signature algorithm is not allowed'
  if (error instanceof jose.JWKSNoMatchingKey) return 'the issuer has no such key'
  if (error instanceof jose.JWKSMultipleMatchingKeys) return 'it names no key and several match'
  const isMalformed =
    error instanceof jose.JWTInvalid ||
    error instanceof jose.JWSInvalid ||
    error instanceof jose.JOSENotSupported
  return isMalformed ? 'it is malformed' : null
}

/** Fetches with a size limit, and not again shortly after a failure. */
function patientFetch(pauseMs: number): FetchImplementation {
  let failedAtMs = Number.NEGATIVE_INFINITY
  let failure: unknown
  return async (url, options) => {
    if (performance.now() - failedAtMs < pauseMs) throw failure
    try {
      const response = await fetch(url, options)
      if (response.status !== 200) {
        await response.body?.cancel()
        throw new Error(`the key set URL returned status ${response.status}`)
      }
      const chunks: Uint8Array[] = []
      let size = 0
      for await (const chunk of response.body ?? []) {
        size += chunk.length
        if (size > MAX_KEY_SET_BYTES) throw new Error(`the key set exceeds ${MAX_KEY_SET_BYTES} bytes`)
        chunks.push(chunk)
      }
      return new Response(Buffer.concat(chunks), { headers: { 'content-type': 'application/json' } })
    } catch (error) {
      failedAtMs = performance.now()
      failure = error
      throw error
    }
  }
}
