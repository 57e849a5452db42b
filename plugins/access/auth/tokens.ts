/** Verifies JSON Web Tokens of one issuer: signature by the issuer's published keys, issuer, audience, times, claims. */
import type { FetchImplementation, JWTPayload, JWTVerifyGetKey } from 'jose'
import type { Identity, SettingProblem } from '#kernel'
import type { JwtConfig } from './config.ts'
import { authErrors } from './errors.ts'

/** Three parts of base64url, the last one not empty: unsigned tokens are not even looked at. */
const SIGNED_TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** A key set is some kilobytes. Bytes. */
const MAX_KEY_SET_BYTES = 1 << 20
/** Longer tenants are refused, as each is stored and logged. Characters. */
const MAX_TENANT_LENGTH = 256
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

type Jose = typeof import('jose')

export function* jwtProblems({ jwksUrl }: JwtConfig): Generator<SettingProblem> {
  const url = URL.parse(jwksUrl)
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.has(url.hostname))
  if (!isSafe) yield { path: ['jwt', 'jwksUrl'], text: 'must be an https URL, or http on loopback' }
}

/**
 * The issuer's keys are fetched when the first token comes and kept; a token that names an unknown key makes them
 * fetched again, at most once in `refetchMs`, and a failed fetch is not tried again for as long.
 */
export class TokenVerifier {
  readonly #config: JwtConfig
  /** Loaded only where tokens are checked: it is in memory once per thread. */
  readonly #jose = import('jose')
  readonly #keySet: URL
  #keys: JWTVerifyGetKey | null = null

  /** @throws Error where the keys would come over a wire that anybody can write to */
  constructor(config: JwtConfig) {
    this.#config = config
    for (const { path, text } of jwtProblems(config))
      throw new Error(`plugins.auth.${path.join('.')} ${text}`)
    this.#keySet = new URL(config.jwksUrl)
    // Whoever verifies hears of it.
    this.#jose.catch(() => {})
  }

  /** True for what has the shape of a signed token, whoever issued it. */
  looksLikeToken(text: string): boolean {
    return SIGNED_TOKEN.test(text)
  }

  /** True for a token that names this issuer, valid or not: it must not leave the gateway. */
  isOwn(text: string): boolean {
    if (!SIGNED_TOKEN.test(text)) return false
    try {
      const claims: unknown = JSON.parse(Buffer.from(text.split('.')[1], 'base64url').toString())
      return (claims as JWTPayload | null)?.iss === this.#config.issuer
    } catch {
      return false
    }
  }

  /** @returns null for a token that is not good; @throws identity_keys_unavailable when that cannot be known */
  async verify(token: string): Promise<Identity | null> {
    const { issuer, audience, algorithms, clockSkewMs } = this.#config
    const jose = await this.#jose
    this.#keys ??= this.#openKeys(jose)
    try {
      const { payload } = await jose.jwtVerify(token, this.#keys, {
        issuer,
        audience,
        algorithms,
        clockTolerance: clockSkewMs / 1000,
        requiredClaims: ['exp'],
      })
      return this.#identityOf(payload)
    } catch (error) {
      // Everything that is wrong with a token has a class of its own; the rest is about getting the keys.
      if (isRefusal(error, jose.errors)) return null
      throw authErrors.identity_keys_unavailable.with({ cause: error })
    }
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
    const { tenantClaim, roleClaim, adminRole } = this.#config
    const tenant = Object.hasOwn(payload, tenantClaim) ? payload[tenantClaim] : undefined
    if (typeof tenant !== 'string' || tenant === '' || tenant.length > MAX_TENANT_LENGTH) return null
    if (/\p{Cc}/u.test(tenant)) return null
    const roles = Object.hasOwn(payload, roleClaim) ? payload[roleClaim] : undefined
    const isAdmin =
      typeof roles === 'string'
        ? roles.split(' ').includes(adminRole)
        : Array.isArray(roles) && roles.includes(adminRole)
    // Apart from the tenants of keys, so that no claim can name one of those.
    return { tenant: `jwt:${tenant}`, role: isAdmin ? 'admin' : 'user' }
  }
}

function isRefusal(error: unknown, jose: Jose['errors']): boolean {
  return (
    error instanceof jose.JWTClaimValidationFailed ||
    error instanceof jose.JWTExpired ||
    error instanceof jose.JWTInvalid ||
    error instanceof jose.JWSInvalid ||
    error instanceof jose.JWSSignatureVerificationFailed ||
    error instanceof jose.JOSEAlgNotAllowed ||
    error instanceof jose.JOSENotSupported ||
    error instanceof jose.JWKSNoMatchingKey ||
    error instanceof jose.JWKSMultipleMatchingKeys
  )
}

/** Fetches with a limit on the answer's size, and leaves an issuer that has just failed alone. */
function patientFetch(pauseMs: number): FetchImplementation {
  let failedAtMs = Number.NEGATIVE_INFINITY
  let failure: unknown
  return async (url, options) => {
    if (performance.now() - failedAtMs < pauseMs) throw failure
    try {
      const reply = await fetch(url, options)
      if (reply.status !== 200) {
        await reply.body?.cancel()
        throw new Error(`the key set answered ${reply.status}`)
      }
      const chunks: Uint8Array[] = []
      let size = 0
      for await (const chunk of reply.body ?? []) {
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
