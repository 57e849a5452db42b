/** Calls a running gateway over HTTP; errors explain the problem and the next step. */
import { type Command, Option } from 'commander'
import { CliError, printable } from './output.ts'

export interface GatewayOptions {
  /** Base URL, such as `http://127.0.0.1:30000`. */
  readonly url: string
  readonly apiKey: string | undefined
}

export class GatewayRefusal extends CliError {
  readonly status: number
  /** Body of the response. */
  readonly body: string

  constructor(status: number, message: string, body: string) {
    super(message)
    this.name = 'GatewayRefusal'
    this.status = status
    this.body = body
  }
}

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

const CALL_LIMIT_MS = 30_000

export class GatewayClient {
  readonly #base: string
  readonly #apiKey: string | undefined

  constructor({ url, apiKey }: GatewayOptions) {
    if (!/^https?:\/\//.test(url))
      throw new CliError(`--gateway must begin with http:// or https://, got ${url}`)
    this.#base = url.replace(/\/+$/, '')
    this.#apiKey = apiKey
  }

  /**
   * @returns the parsed response
   * @throws GatewayRefusal for statuses from 400 on, CliError if the gateway is unreachable
   */
  async call(method: Method, path: string, body?: unknown): Promise<unknown> {
    const text = await this.callText(method, path, body)
    try {
      return JSON.parse(text)
    } catch {
      throw new CliError(`${this.#base}${path} did not return JSON; is this a Weir gateway?`)
    }
  }

  /** Like `call`, for text responses. */
  async callText(method: Method, path: string, body?: unknown): Promise<string> {
    const headers: Record<string, string> = { accept: 'application/json' }
    if (this.#apiKey !== undefined) headers.authorization = `Bearer ${this.#apiKey}`
    if (body !== undefined) headers['content-type'] = 'application/json'
    const response = await this.#fetch(path, { method, headers, body: JSON.stringify(body) })
    const text = await response.text()
    if (!response.ok) throw this.#refusal(response.status, text)
    return text
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(`${this.#base}${path}`, { ...init, signal: AbortSignal.timeout(CALL_LIMIT_MS) })
    } catch (error) {
      throw new CliError(this.#explain(error), error)
    }
  }

  #explain(error: unknown): string {
    if (error instanceof Error && error.name === 'TimeoutError')
      return `${this.#base} did not respond within ${CALL_LIMIT_MS / 1000} s`
    const code = (error as { cause?: { code?: string } }).cause?.code
    if (code === 'ECONNREFUSED')
      return `no gateway listens at ${this.#base}; start one with 'weir serve', or select another with --gateway`
    if (code === 'ENOTFOUND') return `the host of ${this.#base} cannot be resolved; check --gateway`
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
      return `the certificate of ${this.#base} is for other names (${code})\n  set --gateway to a name of the certificate`
    if (code !== undefined && /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)/.test(code))
      return `the certificate of ${this.#base} is not trusted here (${code})\n  for a private authority, set NODE_EXTRA_CA_CERTS=ca.pem`
    return `cannot reach ${this.#base}${code === undefined ? '' : ` (${code})`}; check --gateway`
  }

  #refusal(status: number, text: string): GatewayRefusal {
    const { message, code } = readError(text)
    const next = nextStep(status, code, this.#apiKey !== undefined)
    return new GatewayRefusal(
      status,
      `the gateway returned ${status}: ${printable(message)}${next === '' ? '' : `\n  ${next}`}`,
      text,
    )
  }
}

/** Message and code of either error format. */
function readError(text: string): { message: string; code: string | null } {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown; code?: unknown } }
    if (typeof error?.message === 'string') {
      return { message: error.message, code: typeof error.code === 'string' ? error.code : null }
    }
  } catch {
    // Not a body of the gateway, such as a proxy's error page.
  }
  return { message: text.trim().slice(0, 200) || 'no body', code: null }
}

function nextStep(status: number, code: string | null, hasKey: boolean): string {
  if (code === 'route_not_found') return 'is --gateway the address of the API of a Weir gateway?'
  if (status === 401) {
    return hasKey
      ? 'the key is not an administration key of this gateway; check --api-key or WEIR_ADMIN_KEY'
      : 'this gateway requires a key: pass --api-key, or set WEIR_ADMIN_KEY'
  }
  if (status === 403)
    return 'the key is valid, but its role is not admin; use a control-plane key with that role'
  if (status === 503) return "try again shortly; 'weir workers list' shows the state of the workers"
  return ''
}

const DEFAULT_GATEWAY = 'http://127.0.0.1:30000'

export function withGateway(command: Command): Command {
  return command
    .addOption(new Option('--gateway <url>', 'the gateway').env('WEIR_GATEWAY').default(DEFAULT_GATEWAY))
    .addOption(new Option('--api-key <key>', 'key for administration').env('WEIR_ADMIN_KEY'))
    .option('--json', 'print JSON')
}

export function clientOf(command: Command): GatewayClient {
  const { gateway, apiKey } = command.opts<{ gateway: string; apiKey?: string }>()
  return new GatewayClient({ url: gateway, apiKey })
}
