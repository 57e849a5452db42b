/**
 * Skips over JSON values in bytes, for code that inspects bodies without parsing them. Nothing recurses, and each byte is
 * read a bounded number of times. @hot
 * @source RFC 8259
 */
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COLON = 0x3a
export const COMMA = 0x2c
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d

/** Longer strings use the native search; shorter ones are faster in the loop. bench: relay-json-100k */
const SHORT_STRING = 24
const MAX_SLASHES = 64
const WALKED_BYTES = 4_096

/** @returns position of the next byte that is no white space, or the length */
export function skipSpace(body: Buffer, from: number): number {
  let at = from
  while (at < body.length) {
    const byte = body[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
  return at
}

/** @param from position of the opening quote @returns position behind the closing one, or -1 */
export function skipString(body: Buffer, from: number): number {
  const after = skipStringPart(body, from + 1, body.length)
  return after < 0 ? -1 : after
}

/**
 * Skips the rest of a string, in steps if it is long.
 *
 * @param from inside the string, not between a backslash and the escaped character
 * @param until offset from which on it may stop
 * @returns position behind the closing quote, or minus the position at which to continue
 */
export function skipStringPart(body: Buffer, from: number, until: number): number {
  const end = body.length
  let at = from
  let quote = -1
  while (true) {
    for (const near = at + SHORT_STRING; at < near && at < end; at++) {
      const byte = body[at]
      if (byte === QUOTE) return at + 1
      if (byte === BACKSLASH) at++
    }
    if (at >= until || at >= end) return -at
    if (quote < at) quote = body.indexOf(QUOTE, at)
    if (quote < 0) return -end
    let slashes = 0
    while (slashes < MAX_SLASHES && quote - 1 - slashes >= at && body[quote - 1 - slashes] === BACKSLASH)
      slashes++
    // Too many backslashes to count backwards each time: skips them forwards in pairs.
    if (slashes === MAX_SLASHES) at = pairedUntil(body, at, Math.min(quote, at + WALKED_BYTES))
    else if ((slashes & 1) === 0) return quote + 1
    else at = quote + 1
  }
}

function pairedUntil(body: Buffer, from: number, to: number): number {
  let at = from
  while (at < to) at += body[at] === BACKSLASH ? 2 : 1
  return at
}

/** Skips a number or literal, which it validates. @returns position behind it, or -1 if it is invalid */
export function skipScalar(body: Buffer, at: number): number {
  const byte = body[at]
  if (byte === 0x74) return skipWord(body, at, 'true')
  if (byte === 0x66) return skipWord(body, at, 'false')
  if (byte === 0x6e) return skipWord(body, at, 'null')
  return skipNumber(body, at)
}

/** @returns position behind the word, or -1 if it is not there */
export function skipWord(body: Buffer, at: number, word: string): number {
  for (let i = 0; i < word.length; i++) if (body[at + i] !== word.charCodeAt(i)) return -1
  return at + word.length
}

/** @source RFC 8259 section 6 */
function skipNumber(body: Buffer, from: number): number {
  let at = from
  if (body[at] === 0x2d) at++
  if (body[at] === 0x30) at++
  else {
    const digits = skipDigits(body, at)
    if (digits === at) return -1
    at = digits
  }
  if (body[at] === 0x2e) {
    const digits = skipDigits(body, at + 1)
    if (digits === at + 1) return -1
    at = digits
  }
  if (body[at] === 0x65 || body[at] === 0x45) {
    at++
    if (body[at] === 0x2b || body[at] === 0x2d) at++
    const digits = skipDigits(body, at)
    if (digits === at) return -1
    at = digits
  }
  return at
}

function skipDigits(body: Buffer, from: number): number {
  let at = from
  while (body[at] >= 0x30 && body[at] <= 0x39) at++
  return at
}

/**
 * Skips any value; the contents of containers are not validated.
 * @returns position behind it, or -1
 */
export function skipValue(body: Buffer, from: number): number {
  const byte = body[from]
  if (byte === QUOTE) return skipString(body, from)
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return skipContainer(body, from)
  return skipScalar(body, from)
}

function skipContainer(body: Buffer, from: number): number {
  let depth = 0
  let at = from
  while (at < body.length) {
    const byte = body[at]
    if (byte === QUOTE) {
      at = skipString(body, at)
      if (at < 0) return -1
      continue
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at + 1
    at++
  }
  return -1
}
