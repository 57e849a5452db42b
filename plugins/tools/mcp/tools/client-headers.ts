/** Validates the headers that a request sets for its tool server, and its authorization. */
import type { McpToolRequest } from '#kernel'
import { mcpErrors } from '../errors.ts'

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const MAX_VALUE = 16_384
const MAX_HEADERS = 64

/** Headers of framing, routing and the protocol. */
const REFUSED = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'content-length',
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
])

/** @returns names in lower case @throws GatewayError (400); its message contains no values */
export function readClientHeaders({
  label,
  headers,
  authorization,
  param,
}: McpToolRequest): Map<string, string> {
  const read = new Map<string, string>()
  const refuse = (field: string, problem: string) =>
    mcpErrors.invalid_mcp_header.with({ param: `${param}.${field}` }, label, problem)
  if ((headers?.size ?? 0) > MAX_HEADERS) throw refuse('headers', `more than ${MAX_HEADERS}`)
  for (const [given, value] of headers ?? []) {
    const name = given.toLowerCase()
    if (!NAME.test(name)) throw refuse('headers', 'a name is not a valid header name')
    if (REFUSED.has(name)) throw refuse('headers', `'${name}' cannot be set`)
    if (read.has(name)) throw refuse('headers', `'${name}' is given twice`)
    if (!isValue(value)) throw refuse('headers', `the value of '${name}' cannot be sent`)
    read.set(name, value)
  }
  if (authorization === undefined || authorization === '') return read
  if (read.has('authorization')) throw refuse('authorization', 'authorization is given twice')
  if (!isValue(authorization)) throw refuse('authorization', 'the token cannot be sent')
  read.set('authorization', /^bearer /i.test(authorization) ? authorization : `Bearer ${authorization}`)
  return read
}

function isValue(value: string): boolean {
  return value.length <= MAX_VALUE && VALUE.test(value)
}
