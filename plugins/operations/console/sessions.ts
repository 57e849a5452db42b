/** Sessions of the console: sign-in with a credential of the control plane, and the check of requests that have the cookie. */
import { ANONYMOUS_TENANT, type AuthService, type Identity, type SessionService } from '#kernel'
import { consoleErrors } from './errors.ts'
import {
  MAX_CREDENTIAL_BYTES,
  openSession,
  readCookie,
  type Session,
  sealSession,
  writeCookie,
} from './session-cookie.ts'
import type { SessionState } from './session-state.ts'

/** Request headers that sessions read. */
export const SESSION_HEADERS = ['cookie', 'sec-fetch-site', 'x-weir-console'] as const

type SessionRequest = Parameters<SessionService['identify']>[0]
type Check = Identity | Promise<Identity>

const ANONYMOUS: Identity = Object.freeze({ tenant: ANONYMOUS_TENANT, role: null })

export class ConsoleSessions implements SessionService {
  readonly #auth: AuthService | null
  readonly #state: () => SessionState
  readonly #lifeSecs: number
  readonly #hasTls: () => boolean

  /**
   * @param options.auth null if no route needs a credential
   */
  constructor(options: {
    readonly auth: AuthService | null
    readonly state: () => SessionState
    readonly lifeSecs: number
    readonly hasTls: () => boolean
  }) {
    this.#auth = options.auth
    this.#state = options.state
    this.#lifeSecs = options.lifeSecs
    this.#hasTls = options.hasTls
  }

  /** Whether the control plane needs a credential. */
  get isRequired(): boolean {
    try {
      void this.check('GET', undefined)
      return false
    } catch {
      return true
    }
  }

  /** Operators without role admin may only read. @throws as `AuthService.check` */
  check(method: string, authorization: string | undefined): Check {
    const access = isRead(method) ? 'operator' : 'admin'
    return this.#auth?.check(access, { authorization, apiKey: undefined }) ?? ANONYMOUS
  }

  identify(request: SessionRequest): Check | null {
    const session = this.read(request)
    if (session === null) return null
    assertOwnPage(request)
    return this.check(request.method, session.authorization)
  }

  /** The session of a request, whatever its page and the state of its key; null without one. */
  read(request: SessionRequest): Session | null {
    const value = readCookie(request.header('cookie'))
    const { secret, ended } = this.#state()
    const session = value === null || secret === null ? null : openSession(value, secret)
    if (session === null || ended.has(session.id)) return null
    return Date.now() < session.expiresAtMs ? session : null
  }

  /**
   * @param authorization a checked credential
   * @returns the end of the session, milliseconds since 1970, and its Set-Cookie header
   * @throws credential_too_long
   */
  open(request: SessionRequest, authorization: string): { expiresAtMs: number; cookie: string } {
    const bytes = Buffer.byteLength(authorization)
    if (bytes > MAX_CREDENTIAL_BYTES) throw consoleErrors.credential_too_long(bytes, MAX_CREDENTIAL_BYTES)
    const { secret } = this.#state()
    if (secret === null) throw new Error('the secret of the sessions is not published yet')
    const expiresAtMs = Date.now() + this.#lifeSecs * 1_000
    const value = sealSession({ authorization, expiresAtMs }, secret)
    return { expiresAtMs, cookie: this.#cookie(request, value, this.#lifeSecs) }
  }

  /** @returns the Set-Cookie header that removes the cookie @throws foreign_session_request */
  close(request: SessionRequest): string {
    assertOwnPage(request)
    return this.#cookie(request, '', 0)
  }

  /** TLS may end at a proxy, which the origin of the page shows. */
  #cookie(request: SessionRequest, value: string, maxAgeSecs: number): string {
    const isSecure = this.#hasTls() || request.header('origin')?.startsWith('https:') === true
    return writeCookie(value, maxAgeSecs, isSecure)
  }
}

const isRead = (method: string) => method === 'GET' || method === 'HEAD'

/**
 * Cookies come with requests of any page of the host, on other ports too. Browsers report the origin of such requests; a page
 * of another origin cannot add the header to a request that has the cookie.
 *
 * @throws foreign_session_request
 */
function assertOwnPage(request: SessionRequest): void {
  const hasHeader = request.header('x-weir-console') === '1'
  if (!isSameOrigin(request) || !(isRead(request.method) || hasHeader))
    throw consoleErrors.foreign_session_request()
}

/** @source Fetch Metadata Request Headers, section 2.4; `none` is a request of the user, such as an opened bookmark */
function isSameOrigin(request: SessionRequest): boolean {
  const site = request.header('sec-fetch-site')
  // Decides alone, because a proxy may change Host.
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const origin = request.header('origin')
  return origin === undefined || URL.parse(origin)?.host === request.header('host')
}
