/** @hot Parses header names and values of HTTP/1.1 responses. */

import { isUtf8 } from 'node:buffer'
import { TOKEN_BYTE } from '#kernel'

/** Value of a hexadecimal digit, -1 for all other bytes. */
export const HEX_DIGIT = new Int8Array(256).fill(-1)
for (let digit = 0; digit < 16; digit++) {
  const char = digit.toString(16)
  HEX_DIGIT[char.charCodeAt(0)] = digit
  HEX_DIGIT[char.toUpperCase().charCodeAt(0)] = digit
}

const COMMON_NAMES = [
  'accept-ranges',
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'alt-svc',
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'etag',
  'expires',
  'keep-alive',
  'last-modified',
  'openai-organization',
  'openai-processing-ms',
  'openai-version',
  'pragma',
  'retry-after',
  'server',
  'set-cookie',
  'strict-transport-security',
  'trailer',
  'transfer-encoding',
  'vary',
  'via',
  'x-accel-buffering',
  'x-content-type-options',
  'x-powered-by',
  'x-request-id',
]

/** Hash table by length, first and last letter; in a collision the later name wins. */
const nameTable: (string | undefined)[] = new Array(4096).fill(undefined)
for (const name of COMMON_NAMES)
  nameTable[nameCell(name.length, name.charCodeAt(0), name.charCodeAt(name.length - 1))] = name

function nameCell(length: number, first: number, last: number): number {
  return (length * 131 + first * 31 + last * 7) & 4095
}

/**
 * A header name in lower case; common names are interned.
 * All bytes from `start` to `end` must be token bytes, at least one.
 */
export function headerName(buffer: Buffer, start: number, end: number): string {
  const length = end - start
  const common = nameTable[nameCell(length, TOKEN_BYTE[buffer[start]], TOKEN_BYTE[buffer[end - 1]])]
  if (common !== undefined && common.length === length) {
    let at = 0
    while (at < length && common.charCodeAt(at) === TOKEN_BYTE[buffer[start + at]]) at++
    if (at === length) return common
  }
  return buffer.toString('latin1', start, end).toLowerCase()
}

/** A header value, decoded as UTF-8 if valid, otherwise as latin1. */
export function headerText(buffer: Buffer, start: number, end: number): string {
  let at = start
  while (at < end && buffer[at] < 0x80) at++
  if (at === end || !isUtf8(buffer.subarray(start, end))) return buffer.toString('latin1', start, end)
  return buffer.toString('utf8', start, end)
}
