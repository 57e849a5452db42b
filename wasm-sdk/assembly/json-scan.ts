/** Scans JSON text: ends of values, validity of documents, content of strings. */
import { decodeUtf8 } from './memory'

/** Deeper documents are rejected, since the check is recursive. */
const MAX_DEPTH = 256

// @ts-ignore: decorator
@inline
function isSpace(byte: u8): bool {
  return byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09
}

export function skipSpace(at: usize, end: usize): usize {
  while (at < end && isSpace(load<u8>(at))) at++
  return at
}

/** @param at the opening quote @returns address after the closing one */
export function skipString(at: usize, end: usize): usize {
  at++
  while (at < end) {
    while (at + 8 <= end && isPlain(load<u64>(at))) at += 8
    let byte: u8 = 0
    while (at < end && byte != 0x5c) {
      byte = load<u8>(at++)
      if (byte == 0x22) return at
    }
    at++
  }
  return end
}

/** Returns true for eight bytes without quote and backslash; may return false for a few others. */
// @ts-ignore: decorator
@inline
function isPlain(eight: u64): bool {
  const quote = eight ^ 0x2222_2222_2222_2222
  const backslash = eight ^ 0x5c5c_5c5c_5c5c_5c5c
  const found =
    ((quote - 0x0101_0101_0101_0101) & ~quote) | ((backslash - 0x0101_0101_0101_0101) & ~backslash)
  return (found & 0x8080_8080_8080_8080) == 0
}

/** Address after a value of a valid document. */
export function skipValue(at: usize, end: usize): usize {
  const first = load<u8>(at)
  if (first == 0x22) return skipString(at, end)
  if (first != 0x7b && first != 0x5b) {
    while (at < end) {
      const byte = load<u8>(at)
      if (byte == 0x2c || byte == 0x5d || byte == 0x7d || isSpace(byte)) return at
      at++
    }
    return end
  }
  let depth = 0
  while (at < end) {
    const byte = load<u8>(at)
    if (byte == 0x22) {
      at = skipString(at, end)
      continue
    }
    if (byte == 0x7b || byte == 0x5b) depth++
    else if ((byte == 0x7d || byte == 0x5d) && --depth == 0) return at + 1
    at++
  }
  return end
}

/** @returns address after the value; 0 if it is invalid */
export function checkValue(at: usize, end: usize, depth: i32): usize {
  if (at >= end || depth > MAX_DEPTH) return 0
  const first = load<u8>(at)
  if (first == 0x22) return checkString(at, end)
  if (first == 0x7b) return checkObject(at, end, depth)
  if (first == 0x5b) return checkArray(at, end, depth)
  if (first == 0x74) return checkWord(at, end, 0x65757274) // true
  if (first == 0x6e) return checkWord(at, end, 0x6c6c756e) // null
  if (first == 0x66) return checkWord(at + 1, end, 0x65736c61) // (f)alse
  return checkNumber(at, end)
}

/** @param word four letters in memory order */
function checkWord(at: usize, end: usize, word: u32): usize {
  return at + 4 <= end && load<u32>(at) == word ? at + 4 : 0
}

function checkString(at: usize, end: usize): usize {
  at++
  while (at < end) {
    const byte = load<u8>(at++)
    if (byte == 0x22) return at
    if (byte < 0x20) return 0
    if (byte != 0x5c) continue
    if (at >= end) return 0
    const escape = load<u8>(at++)
    if (escape == 0x75) {
      for (let i = 0; i < 4; i++, at++) if (at >= end || hexDigit(load<u8>(at)) < 0) return 0
    } else if (!isEscape(escape)) return 0
  }
  return 0
}

function isEscape(byte: u8): bool {
  switch (byte) {
    case 0x22: case 0x5c: case 0x2f: case 0x62: case 0x66: case 0x6e: case 0x72: case 0x74: return true
    default: return false
  }
}

function checkObject(at: usize, end: usize, depth: i32): usize {
  at = skipSpace(at + 1, end)
  if (at < end && load<u8>(at) == 0x7d) return at + 1
  while (true) {
    if (at >= end || load<u8>(at) != 0x22) return 0
    at = checkString(at, end)
    if (at == 0) return 0
    at = skipSpace(at, end)
    if (at >= end || load<u8>(at) != 0x3a) return 0
    at = checkValue(skipSpace(at + 1, end), end, depth + 1)
    if (at == 0) return 0
    at = skipSpace(at, end)
    if (at >= end) return 0
    if (load<u8>(at) == 0x7d) return at + 1
    if (load<u8>(at) != 0x2c) return 0
    at = skipSpace(at + 1, end)
  }
}

function checkArray(at: usize, end: usize, depth: i32): usize {
  at = skipSpace(at + 1, end)
  if (at < end && load<u8>(at) == 0x5d) return at + 1
  while (true) {
    at = checkValue(at, end, depth + 1)
    if (at == 0) return 0
    at = skipSpace(at, end)
    if (at >= end) return 0
    if (load<u8>(at) == 0x5d) return at + 1
    if (load<u8>(at) != 0x2c) return 0
    at = skipSpace(at + 1, end)
  }
}

function checkNumber(at: usize, end: usize): usize {
  if (load<u8>(at) == 0x2d) at++
  const whole = at
  at = skipDigits(at, end)
  if (at == whole || (at > whole + 1 && load<u8>(whole) == 0x30)) return 0
  if (at < end && load<u8>(at) == 0x2e) {
    const fraction = at + 1
    at = skipDigits(fraction, end)
    if (at == fraction) return 0
  }
  if (at < end && (load<u8>(at) | 0x20) == 0x65) {
    at++
    if (at < end && (load<u8>(at) == 0x2b || load<u8>(at) == 0x2d)) at++
    const exponent = at
    at = skipDigits(exponent, end)
    if (at == exponent) return 0
  }
  return at
}

function skipDigits(at: usize, end: usize): usize {
  while (at < end && load<u8>(at) >= 0x30 && load<u8>(at) <= 0x39) at++
  return at
}

function hexDigit(byte: u8): i32 {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Text between the quotes of a valid string. */
export function decodeString(at: usize, end: usize): string {
  let plain = at
  while (plain < end && load<u8>(plain) != 0x5c) plain++
  if (plain == end) return decodeUtf8(at, <i32>(end - at))
  // A byte becomes at most one unit, and an escape at most two.
  const units = new StaticArray<u16>(<i32>(end - at))
  const first = changetype<usize>(units)
  let target = first
  while (at < end) {
    if (load<u8>(at) != 0x5c) {
      let stop = at
      while (stop < end && load<u8>(stop) != 0x5c) stop++
      const part = String.UTF8.decodeUnsafe(at, stop - at)
      const bytes = <usize>part.length << 1
      memory.copy(target, changetype<usize>(part), bytes)
      target += bytes
      at = stop
      continue
    }
    const escape = load<u8>(at + 1)
    const isUnit = escape == 0x75
    store<u16>(target, <u16>(isUnit ? hexUnit(at + 2) : unescape(escape)))
    target += 2
    at += isUnit ? 6 : 2
  }
  return String.UTF16.decodeUnsafe(first, target - first)
}

function hexUnit(at: usize): i32 {
  let unit = 0
  for (let i: usize = 0; i < 4; i++) unit = (unit << 4) | hexDigit(load<u8>(at + i))
  return unit
}

function unescape(byte: u8): i32 {
  switch (byte) {
    case 0x62: return 0x08
    case 0x66: return 0x0c
    case 0x6e: return 0x0a
    case 0x72: return 0x0d
    case 0x74: return 0x09
    default: return byte
  }
}

/** Returns true if the text between two quotes is `expected`; creates no string for ASCII without escapes. */
export function stringEquals(at: usize, end: usize, expected: string): bool {
  const length = expected.length
  for (let i = 0; at < end; i++, at++) {
    const byte = load<u8>(at)
    if (byte == 0x5c || byte >= 0x80) return decodeString(at, end) == expected.substring(i)
    if (i >= length || expected.charCodeAt(i) != byte) return false
    if (at + 1 == end) return i + 1 == length
  }
  return length == 0
}
