/** @hot Writes the head of a request, without anything that could inject a line. */
import type { UpstreamRequest } from '#kernel'
import { isFieldValue, isToken } from '#kernel'

/** The unchanging parts of the heads of one worker's requests. */
export interface HeadTemplate {
  /** Put before the path; without a trailing slash, often empty. */
  readonly pathPrefix: string
  /** The prefix without the API version at its end; null if it has none. */
  readonly versionlessPrefix: string | null
  /** From after the path to the end of the host header, such as ` HTTP/1.1\r\nhost: h:1\r\n`. */
  readonly afterPath: string
}

/** The template with the lines of the worker's last request, by their place. */
export interface KnownHead extends HeadTemplate {
  readonly lines: (KnownLine | undefined)[]
}

interface KnownLine {
  name: string
  value: string
  line: string
}

const MAX_KNOWN_LINES = 16
const MAX_KNOWN_LENGTH = 256

/** Hop-by-hop headers, which are never forwarded. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * The head of a request in latin1, or null if method or path are unsafe. Drops hop-by-hop headers and those with an unsafe
 * name or value.
 *
 * @source RFC 9112 §3, §5; RFC 9110 §5.5, §7.6.1
 */
export function writeRequestHead(template: KnownHead, request: UpstreamRequest): string | null {
  const { method, path, headers, body } = request
  let head = lineOf(template, 0, method, path)
  if (head === '') return null
  for (let at = 0; at + 1 < headers.length; at += 2)
    head += lineOf(template, (at >> 1) + 1, headers[at], headers[at + 1])
  if (body !== null) return `${head}content-length: ${body.length}\r\n\r\n`
  return expectsBody(method) ? `${head}content-length: 0\r\n\r\n` : `${head}\r\n`
}

/**
 * A line of the head, empty if it is unsafe or not forwarded: that of the last request, which is neither checked nor written
 * again, if it has the same at this place. bench: relay-json
 *
 * @param place 0 for the request line, of a method and a path; those of headers follow
 */
function lineOf(template: KnownHead, place: number, name: string, value: string): string {
  const { lines } = template
  const known = place < lines.length ? lines[place] : undefined
  if (known !== undefined && known.name === name && known.value === value) return known.line
  const line = place === 0 ? requestLine(template, name, value) : headerLine(name, value)
  if (place >= MAX_KNOWN_LINES || line.length > MAX_KNOWN_LENGTH) return line
  if (known === undefined) lines[place] = { name, value, line }
  else {
    known.name = name
    known.value = value
    known.line = line
  }
  return line
}

function requestLine(template: HeadTemplate, method: string, path: string): string {
  if (!isToken(method) || !isTarget(path)) return ''
  return `${method} ${targetOf(template, path)}${template.afterPath}`
}

function headerLine(name: string, value: string): string {
  return isToken(name) && isFieldValue(value) && !OWN_HEADERS.has(name) ? `${name}: ${value}\r\n` : ''
}

/** Replaces `/v1` of a path by the version of the prefix; native paths of engines have no version. */
function targetOf({ pathPrefix, versionlessPrefix }: HeadTemplate, path: string): string {
  if (versionlessPrefix === null) return pathPrefix + path
  return path.startsWith('/v1/') ? pathPrefix + path.slice(3) : versionlessPrefix + path
}

/** Methods for which a worker may wait for a length. @source RFC 9110 §8.6 */
function expectsBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}

/** Origin form: a slash, then visible ASCII. */
function isTarget(path: string): boolean {
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at)
    if (code <= 0x20 || code >= 0x7f) return false
  }
  return path.charCodeAt(0) === 0x2f
}
