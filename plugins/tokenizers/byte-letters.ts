/** The letters in which byte-level vocabularies write bytes: printable ones stand for themselves, the others for 256 and up. */

const BYTE_OF_LETTER = new Map<number, number>()
const LETTERS: string[] = []

for (let byte = 0, next = 256; byte < 256; byte++) {
  const isPrintable =
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
  const code = isPrintable ? byte : next++
  BYTE_OF_LETTER.set(code, byte)
  LETTERS.push(String.fromCharCode(code))
}

/** The bytes of a piece; a piece with any other letter in it is text as it stands. */
export function fromByteLetters(piece: string): Buffer {
  const bytes = Buffer.allocUnsafe(piece.length)
  for (let i = 0; i < piece.length; i++) {
    const byte = BYTE_OF_LETTER.get(piece.charCodeAt(i))
    if (byte === undefined) return Buffer.from(piece)
    bytes[i] = byte
  }
  return bytes
}

export function toByteLetters(bytes: Uint8Array): string {
  let piece = ''
  for (const byte of bytes) piece += LETTERS[byte]
  return piece
}
