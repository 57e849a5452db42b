/** The letters in which byte-level vocabularies write bytes: printable ones stand for themselves, the others for 256 and up. */

/** By code unit; -1 for letters that stand for no byte. */
const BYTE_OF_LETTER = new Int16Array(512).fill(-1)
const LETTERS: string[] = []

for (let byte = 0, next = 256; byte < 256; byte++) {
  const isPrintable =
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
  const code = isPrintable ? byte : next++
  BYTE_OF_LETTER[code] = byte
  LETTERS.push(String.fromCharCode(code))
}

/** The byte that a letter stands for; -1 for other letters. */
export function byteOfLetter(code: number): number {
  return code < BYTE_OF_LETTER.length ? BYTE_OF_LETTER[code] : -1
}

/** The bytes of a piece; a piece with any other letter in it is text as it stands. */
export function fromByteLetters(piece: string): Buffer {
  const bytes = Buffer.allocUnsafe(piece.length)
  for (let i = 0; i < piece.length; i++) {
    const byte = byteOfLetter(piece.charCodeAt(i))
    if (byte < 0) return Buffer.from(piece)
    bytes[i] = byte
  }
  return bytes
}

export function toByteLetters(bytes: Uint8Array): string {
  let piece = ''
  for (const byte of bytes) piece += LETTERS[byte]
  return piece
}
