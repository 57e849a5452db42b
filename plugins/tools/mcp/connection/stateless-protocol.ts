/**
 * What protocol 2026-07-28 adds to each request: the members of `_meta`, and headers that repeat parts of the body for
 * proxies.
 * @source modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 */
import { isObject } from '#kernel'

export const STATELESS_VERSION = '2026-07-28'
const META = 'io.modelcontextprotocol/'
/** Elicitation is declared because it is declined with the server's question in the result; sampling and roots are not offered. */
const CAPABILITIES = { elicitation: { form: {}, url: {} }, extensions: { [`${META}tasks`]: {} } }

/** Members of `_meta` that every request needs. */
export function toEnvelope(version: string, clientInfo: object): Readonly<Record<string, unknown>> {
  return {
    [`${META}protocolVersion`]: version,
    [`${META}clientInfo`]: clientInfo,
    [`${META}clientCapabilities`]: CAPABILITIES,
  }
}

/** Member of the parameters that `Mcp-Name` repeats, by method. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

/** Names and values of the headers of a request, except those of single parameters. */
export function requestHeaders(method: string, params: Readonly<Record<string, unknown>>): string[] {
  const name = params[NAMED_BY.get(method) ?? '']
  const headers = ['mcp-method', method]
  return typeof name === 'string' ? [...headers, 'mcp-name', encodeHeaderValue(name)] : headers
}

/** A parameter of a tool that is also sent as a header. */
export interface HeaderParam {
  readonly path: readonly string[]
  readonly header: string
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])
const MAX_DEPTH = 32
const MAX_HEADER_PARAMS = 64

/**
 * Reads the `x-mcp-header` members of an input schema.
 * @returns null if one is invalid: clients must not use such a tool over HTTP
 */
export function readHeaderParams(schema: unknown): readonly HeaderParam[] | null {
  const found: HeaderParam[] = []
  const names = new Set<string>()
  /** @param path null where no chain of `properties` leads */
  const isValid = (node: unknown, path: readonly string[] | null, depth: number): boolean => {
    if (typeof node !== 'object' || node === null) return true
    if (depth > MAX_DEPTH) return !hasMark(node)
    if (Array.isArray(node)) return node.every((item) => isValid(item, null, depth + 1))
    const schema = node as Record<string, unknown>
    const header = schema[MARK]
    if (header !== undefined) {
      if (path === null || path.length === 0 || !TYPES.has(schema.type)) return false
      if (typeof header !== 'string' || !TOKEN.test(header) || names.has(header.toLowerCase())) return false
      names.add(header.toLowerCase())
      found.push({ path, header: `Mcp-Param-${header}` })
    }
    return Object.entries(schema).every(([key, value]) => {
      if (VALUES.has(key)) return true
      if (key !== 'properties') return isValid(value, null, depth + 1)
      if (!isObject(value)) return true
      return Object.entries(value).every(([name, property]) =>
        isValid(property, path === null ? null : [...path, name], depth + 1),
      )
    })
  }
  return isValid(schema, [], 0) && found.length <= MAX_HEADER_PARAMS ? found : null
}

const MARK = 'x-mcp-header'
/** Keywords whose values are no schemas. */
const VALUES: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples'])

function hasMark(node: object): boolean {
  return JSON.stringify(node).includes(`"${MARK}"`)
}

/** Names and values of the headers for the parameters of one call; absent and null parameters have none. */
export function paramHeaders(
  params: readonly HeaderParam[],
  input: Readonly<Record<string, unknown>>,
): (readonly [string, string])[] {
  return params.flatMap(({ path, header }) => {
    let value: unknown = input
    for (const name of path) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
    const isNumber = typeof value === 'number' && Number.isFinite(value)
    if (typeof value !== 'string' && typeof value !== 'boolean' && !isNumber) return []
    return [[header, encodeHeaderValue(String(value))] as const]
  })
}

const BASE64 = /^=\?base64\?.*\?=$/s
const PLAIN = /^[\t\x20-\x7e]+$/

/** Values that a header cannot carry unchanged are sent in base64. */
export function encodeHeaderValue(value: string): string {
  if (PLAIN.test(value) && value === value.trim() && !BASE64.test(value)) return value
  return `=?base64?${Buffer.from(value).toString('base64')}?=`
}
