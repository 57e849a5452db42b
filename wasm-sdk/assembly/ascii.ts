/** Lower case of ASCII letters, which is enough for header names. */

// @ts-ignore: decorator
@inline
function lower(unit: i32): i32 {
  return unit >= 0x41 && unit <= 0x5a ? unit | 0x20 : unit
}

export function toLowerAscii(text: string): string {
  for (let i = 0, length = text.length; i < length; i++) {
    if (lower(text.charCodeAt(i)) != text.charCodeAt(i)) return lowered(text)
  }
  return text
}

function lowered(text: string): string {
  const units = new Array<i32>(text.length)
  for (let i = 0, length = text.length; i < length; i++) units[i] = lower(text.charCodeAt(i))
  return String.fromCharCodes(units)
}

/** Returns true if the UTF-8 text is `expected`, a name in lower case, ignoring case. */
export function equalsIgnoringCase(at: usize, end: usize, expected: string): bool {
  const length = <usize>expected.length
  if (end - at != length) return false
  for (let i: usize = 0; i < length; i++) {
    if (lower(load<u8>(at + i)) != expected.charCodeAt(<i32>i)) return false
  }
  return true
}
