/** @hot Reads the values of the headers that decide where a response ends. */

const MAX_CONTENT_LENGTH_DIGITS = 15

/** Digits only, and few enough to stay exact; -1 for anything else. @source RFC 9112 §6.2 */
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

/** No other coding is taken, alone or with `chunked`. @source RFC 9112 §6.1 */
export function isChunkedCoding(value: string): boolean {
  return value === 'chunked' || value.toLowerCase() === 'chunked'
}

/** Whether a Connection header names the option `close`. @source RFC 9112 §9.6 */
export function hasCloseOption(value: string): boolean {
  if (value === 'close') return true
  for (const option of value.split(',')) if (option.trim().toLowerCase() === 'close') return true
  return false
}
