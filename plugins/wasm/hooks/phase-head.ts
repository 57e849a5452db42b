/** Writes heads of inputs as JSON without an object per call; the common part of a chain is written once. */
import { CREDENTIAL_HEADERS, type GuestInput, type HeaderPair } from '../../../wasm-sdk/abi.ts'
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
export function requestJson({ request }: GuestInput): string {
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
  const { response, error, tool } = input
  let head = `{"abi":${input.abi},"phase":"${input.phase}","now_ms":${input.now_ms},"request":${request}`
  if (requestHeaders !== null && needs.headers !== false)
    head += `,"headers":${headersJson(requestHeaders, needs.headers, needs.credentials)}`
  head += '}'
  if (response !== undefined) {
    head += `,"response":{"status":${status},"is_stream":${response.is_stream}`
    if (responseHeaders !== null && needs.response_headers !== false)
      head += `,"headers":${headersJson(responseHeaders, needs.response_headers, false)}`
    head += '}'
  }
  if (error !== undefined) head += `,"error":${JSON.stringify(error)}`
  if (tool !== undefined) head += `,"tool":${JSON.stringify(tool)}`
  if (fetched !== null) head += `,"fetched":${JSON.stringify(fetched.head)},"state":${quoted(fetched.state)}`
  return `${head}}`
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

/** @param needs true for all but credentials, or the names wanted */
export function toPairs(
  headers: readonly string[],
  needs: boolean | readonly string[],
  showsCredentials = false,
): HeaderPair[] {
  const pairs: HeaderPair[] = []
  if (needs === false) return pairs
  for (let i = 0; i < headers.length; i += 2)
    if (isShown(headers[i], needs, showsCredentials)) pairs.push([headers[i], headers[i + 1]])
  return pairs
}

function isShown(name: string, needs: boolean | readonly string[], showsCredentials: boolean): boolean {
  if (typeof needs !== 'boolean') return needs.includes(name)
  return needs && (showsCredentials || !CREDENTIAL_HEADERS.includes(name))
}
