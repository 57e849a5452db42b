/**
 * @hot
 * Finds the unfinished character at the end of some bytes.
 */

/**
 * How many bytes at the end begin a character that later bytes may finish; 0 when there is none.
 * @param length bytes of it that count
 */
export function unfinishedBytes(bytes: Uint8Array, length: number): number {
  const first = Math.max(0, length - 3)
  for (let at = length - 1; at >= first; at--) {
    const lead = bytes[at]
    if ((lead & 0xc0) === 0x80) continue
    const have = length - at
    return have < sequenceLength(lead) && mayContinue(lead, bytes, at, have) ? have : 0
  }
  return 0
}

function sequenceLength(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2
  if (lead >= 0xe0 && lead <= 0xef) return 3
  if (lead >= 0xf0 && lead <= 0xf4) return 4
  return 1
}

/** No overlong forms, no surrogates, nothing above U+10FFFF. @source RFC 3629 section 4 */
function mayContinue(lead: number, bytes: Uint8Array, at: number, have: number): boolean {
  if (have < 2) return true
  const second = bytes[at + 1]
  if (lead === 0xe0) return second >= 0xa0
  if (lead === 0xed) return second <= 0x9f
  if (lead === 0xf0) return second >= 0x90
  if (lead === 0xf4) return second <= 0x8f
  return true
}
