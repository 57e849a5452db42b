/** Flat header lists, [name, value, …] with names in lower case, and the bytes that names and values may contain. @hot */

/** First value of a name. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1]
  return undefined
}

/** Removes every header of a name. @param from index in the list from which on it removes */
export function removeHeader(headers: string[], name: string, from = 0): void {
  for (let i = headers.length - 2; i >= from; i -= 2) if (headers[i] === name) headers.splice(i, 2)
}

/** The headers that pass the filter, in a new list. */
export function filterHeaders(
  headers: readonly string[],
  accepts: (name: string, value: string) => boolean,
): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < headers.length; i += 2)
    if (accepts(headers[i], headers[i + 1])) kept.push(headers[i], headers[i + 1])
  return kept
}

/** Lower-case byte of each token character, 0 for all others. @source RFC 9110 §5.6.2 */
export const TOKEN_BYTE = new Uint8Array(256)
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
  TOKEN_BYTE[char.charCodeAt(0)] = char.charCodeAt(0)
  TOKEN_BYTE[char.toUpperCase().charCodeAt(0)] = char.charCodeAt(0)
}

/** 1 for bytes that a field value may contain: tab, space, visible ASCII and 0x80 to 0xff. @source RFC 9110 §5.5 */
export const VALUE_BYTE = new Uint8Array(256).fill(1, 0x20)
VALUE_BYTE[0x09] = 1
VALUE_BYTE[0x7f] = 0

/** True for a valid header name. */
export function isToken(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > 0x7f || TOKEN_BYTE[code] === 0) return false
  }
  return text.length > 0
}

/** Characters above 0xff are invalid too: latin1 would truncate them to bytes that may be line ends. */
export function isFieldValue(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > 0xff || VALUE_BYTE[code] === 0) return false
  }
  return true
}

/** 1 for characters of a host with port. @source RFC 3986 §3.2.2 */
const HOST_BYTE = new Uint8Array(128)
for (const char of "-._~!$&'()*+,;=%:[]0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
  HOST_BYTE[char.charCodeAt(0)] = 1

/** True for the value of a Host header of a server without an empty authority. */
export function isHost(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > 0x7f || HOST_BYTE[code] === 0) return false
  }
  return text.length > 0
}

const MAX_CONTENT_LENGTH_DIGITS = 15

/** Digits only, within exact range; -1 for anything else. @source RFC 9112 §6.2 */
export function toContentLength(value: string): number {
  if (value.length === 0 || value.length > MAX_CONTENT_LENGTH_DIGITS) return -1
  let length = 0
  for (let at = 0; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) return -1
    length = length * 10 + digit
  }
  return length
}
