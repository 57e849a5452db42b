/** Writes heads of inputs as JSON without an object per call; the common part of a chain is written once. */
import { CREDENTIAL_HEADERS, type GuestInput } from '../../../wasm-sdk/abi.ts'
import { arePlain, quoted } from '../instances/guest-frame.ts'
import type { Fetched, LoadedModule } from '../threads/guest-task.ts'

interface HeadParts {
  /** Without headers. */
  readonly input: GuestInput
  /** Result of `requestJson` for the input. */
  readonly request: string
  readonly needs: LoadedModule['needs']
  /** Null if the module did not fetch. */
  readonly fetched: Fetched | null
  readonly requestHeaders: readonly string[] | null
  readonly responseHeaders: readonly string[] | null
  /** Status of the response. */
  readonly status: number
}

/** Members of the previous request and their JSON: most requests of a thread differ in the id only. */
const last = {
  method: '',
  path: '',
  query: '',
  route: '',
  tenant: null as string | null,
  client_ip: '',
  json: '',
}

/** The member `request` without headers and without its end. */
export function requestJson({ request }: Pick<GuestInput, 'request'>): string {
  const { id, method, path, query, route, tenant, client_ip } = request
  const isLast =
    last.client_ip === client_ip &&
    last.path === path &&
    last.route === route &&
    last.query === query &&
    last.tenant === tenant &&
    last.method === method &&
    last.json !== ''
  if (!isLast) {
    const json =
      `,"method":${quoted(method)},"path":${quoted(path)},"query":${quoted(query)},"route":${quoted(route)},` +
      `"tenant":${tenant === null ? 'null' : quoted(tenant)},"client_ip":${quoted(client_ip)}`
    Object.assign(last, { method, path, query, route, tenant, client_ip, json })
  }
  return `{"id":${quoted(id)}${last.json}`
}

/** For texts that need no escaping. */
function inQuotes(text: string): string {
  return `"${text}"`
}

export function headOf({
  input,
  request,
  needs,
  fetched,
  requestHeaders,
  responseHeaders,
  status,
}: HeadParts): string {
  const { response, error, tool, prompt } = input
  let head = `{"abi":${input.abi},"phase":"${input.phase}","now_ms":${input.now_ms}`
  head += `,"request":${withHeaders(request, requestHeaders, needs.headers, needs.credentials)}`
  if (response !== undefined) {
    const start = `{"status":${status},"is_stream":${response.is_stream}`
    head += `,"response":${withHeaders(start, responseHeaders, needs.response_headers)}`
  }
  if (error !== undefined) head += `,"error":${JSON.stringify(error)}`
  if (tool !== undefined) head += `,"tool":${JSON.stringify(tool)}`
  if (prompt !== undefined) head += `,"prompt":${JSON.stringify(prompt)}`
  if (fetched !== null) head += `,"fetched":${JSON.stringify(fetched.head)},"state":${quoted(fetched.state)}`
  return `${head}}`
}

/**
 * Completes an object by its headers.
 *
 * @param start JSON of the object without its end
 * @param headers flat list; null if no module of the chain needs them
 * @param needs true for all but credentials, or the names wanted
 */
export function withHeaders(
  start: string,
  headers: readonly string[] | null,
  needs: boolean | readonly string[],
  showsCredentials = false,
): string {
  if (headers === null || needs === false) return `${start}}`
  return `${start},"headers":${headersJson(headers, needs, showsCredentials)}}`
}

function headersJson(
  headers: readonly string[],
  needs: true | readonly string[],
  showsCredentials: boolean,
): string {
  if (needs !== true && needs.length === 0) return '[]'
  const text = arePlain(headers.join('')) ? inQuotes : quoted
  let json = ''
  for (let i = 0; i < headers.length; i += 2) {
    if (!isShown(headers[i], needs, showsCredentials)) continue
    json += `${json === '' ? '' : ','}[${text(headers[i])},${text(headers[i + 1])}]`
  }
  return `[${json}]`
}

function isShown(name: string, needs: true | readonly string[], showsCredentials: boolean): boolean {
  if (needs !== true) return needs.includes(name)
  return showsCredentials || !CREDENTIAL_HEADERS.includes(name)
}
