/** Credentials of one connection: the token of a file, and why the server rejects what it gets. */
import { readFileSync } from 'node:fs'
import { settlesWithin } from '#kernel'
import { MIN_SECRET, type ServerTarget, secretsOf } from './server-target.ts'
import { ToolServerError } from './tool-server-error.ts'

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

const METADATA_MS = 2_000
const MAX_TEXT = 200
const MAX_TOKENS = 4
/** RFC 6750 §2.1. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

export class Credentials {
  readonly #target: ServerTarget
  readonly #configured: readonly string[]
  readonly #tokens: string[] = []
  /** `WWW-Authenticate` of the last rejected request, and what follows from it; null before. */
  #rejection: { readonly challenge: string; readonly explanation: string } | null = null

  constructor(target: ServerTarget) {
    this.#target = target
    this.#configured = secretsOf(target)
  }

  /** What was sent to the server, to redact it in what the server sends. */
  get secrets(): readonly string[] {
    return [...this.#configured, ...this.#tokens]
  }

  /** Token of the file; undefined without a file. Read for each request, because others replace it. @throws ToolServerError */
  token(): string | undefined {
    if (this.#target.kind === 'stdio' || this.#target.tokenFile === undefined) return undefined
    let token: string
    try {
      token = readFileSync(this.#target.tokenFile, 'utf8').trim()
    } catch (cause) {
      throw new ToolServerError('http_error', 0, 'tokenFile cannot be read', { cause })
    }
    if (!TOKEN.test(token)) throw new ToolServerError('http_error', 0, 'tokenFile does not contain a token')
    this.#note(token)
    return token
  }

  /** Adds the token to requests to the server at this URL, and reads why it rejects them. */
  wrap(fetch: Fetch, server: URL): Fetch {
    return async (input, init = {}) => {
      const url = new URL(input)
      if (url.origin !== server.origin) return fetch(url, init)
      const headers = new Headers(init.headers)
      const token = this.token()
      if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
      const [, sent] = /^Bearer (.+)$/i.exec(headers.get('authorization') ?? '') ?? []
      if (sent !== undefined) this.#note(sent)
      const response = await fetch(url, { ...init, headers })
      const isRejected = response.status === 401 || response.status === 403
      if (isRejected && url.pathname === server.pathname) await this.#readRejection(response, server, fetch)
      return response
    }
  }

  /** Adds what the server accepts to an error about credentials. */
  explain(error: ToolServerError): ToolServerError {
    const { type, code, message, isSessionLost } = error
    const explanation = this.#rejection?.explanation ?? ''
    if ((code !== 401 && code !== 403) || explanation === '') return error
    return new ToolServerError(type, code, `${message}: ${explanation}`, {
      isSessionLost,
      cause: error.cause,
    })
  }

  #note(token: string): void {
    if (token.length < MIN_SECRET || this.#tokens.includes(token)) return
    this.#tokens.push(token)
    // Servers do not repeat tokens that were replaced several times.
    if (this.#tokens.length > MAX_TOKENS) this.#tokens.shift()
  }

  async #readRejection(response: Response, server: URL, fetch: Fetch): Promise<void> {
    const challenge = response.headers.get('www-authenticate') ?? ''
    if (challenge === this.#rejection?.challenge) return
    this.#rejection = { challenge, explanation: '' }
    const sdk = await import('@modelcontextprotocol/client')
    const { resourceMetadataUrl, scope, error } = sdk.extractWWWAuthenticateParams(response)
    const facts = error === undefined ? [] : [shorten(error)]
    const read = sdk.discoverOAuthProtectedResourceMetadata(server, { resourceMetadataUrl }, fetch).then(
      ({ authorization_servers: issuers = [], scopes_supported: scopes = [] }) => {
        facts.push(`it accepts tokens of ${shorten(issuers.join(', ')) || 'an unknown authorization server'}`)
        if (scope === undefined && scopes.length > 0) facts.push(`scopes ${shorten(scopes.join(' '))}`)
      },
      () => facts.push('it has no readable resource metadata (RFC 9728)'),
    )
    if (!(await settlesWithin(read, METADATA_MS))) facts.push('its resource metadata did not arrive in time')
    if (scope !== undefined) facts.push(`required scopes ${shorten(scope)}`)
    this.#rejection = { challenge, explanation: facts.join('; ') }
  }
}

/** Texts of the server in messages. */
function shorten(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, ' ').slice(0, MAX_TEXT)
}
