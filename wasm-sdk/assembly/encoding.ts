/** Hexadecimal and URL-safe base64. */

const URL_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

export function toHex(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i++) text += hexDigit(bytes[i] >> 4) + hexDigit(bytes[i] & 15)
  return text
}

function hexDigit(value: u8): string {
  return String.fromCharCode(value < 10 ? 0x30 + value : 0x57 + value)
}

/** Without padding, as in JSON Web Tokens (RFC 7515 section 2). */
export function toBase64Url(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i
    const group =
      (<u32>bytes[i] << 16) | (left > 1 ? <u32>bytes[i + 1] << 8 : 0) | (left > 2 ? <u32>bytes[i + 2] : 0)
    text += URL_DIGITS.charAt(group >> 18) + URL_DIGITS.charAt((group >> 12) & 63)
    if (left > 1) text += URL_DIGITS.charAt((group >> 6) & 63)
    if (left > 2) text += URL_DIGITS.charAt(group & 63)
  }
  return text
}

/** Null unless the text is unpadded URL-safe base64 without unused bits. */
export function fromBase64Url(text: string): Uint8Array | null {
  const length = text.length
  if (length % 4 == 1) return null
  const bytes = new Uint8Array((length * 3) / 4)
  let bits: u32 = 0
  let held = 0
  let at = 0
  for (let i = 0; i < length; i++) {
    const digit = digitOf(text.charCodeAt(i))
    if (digit < 0) return null
    bits = (bits << 6) | digit
    held += 6
    if (held < 8) continue
    held -= 8
    bytes[at++] = <u8>(bits >> held)
    bits &= (1 << held) - 1
  }
  return bits == 0 ? bytes : null
}

function digitOf(unit: i32): i32 {
  if (unit >= 0x41 && unit <= 0x5a) return unit - 0x41
  if (unit >= 0x61 && unit <= 0x7a) return unit - 0x47
  if (unit >= 0x30 && unit <= 0x39) return unit + 4
  if (unit == 0x2d) return 62
  return unit == 0x5f ? 63 : -1
}
