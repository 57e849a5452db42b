/** Reads the large parts of a `tokenizer.json`, vocabulary and merges, from its bytes: no object is made of them. */
import { byteOfLetter } from '../byte-letters.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Pieces as they were read: `bytes` of piece n go from `ends[n - 1]` to `ends[n]`. */
export interface ReadPieces {
  readonly bytes: Uint8Array
  readonly ends: readonly number[]
  readonly ids: readonly number[]
  /** Places of pieces that are text and not letters for bytes. */
  readonly texts: ReadonlySet<number>
}

/** @param start, end of the JSON object of pieces and ids. @throws SyntaxError */
export function readPieces(file: Buffer, start: number, end: number): ReadPieces {
  const bytes = new Uint8Array(end - start)
  const ends: number[] = []
  const ids: number[] = []
  const texts = new Set<number>()
  let used = 0
  let at = start
  for (;;) {
    at = file.indexOf(QUOTE, at)
    if (at < 0 || at >= end) break
    const close = endOfString(file, at)
    const length = writePiece(file, at, close, bytes, used)
    if (length < 0) {
      texts.add(ends.length)
      used += writeText(file, at, close, bytes, used)
    } else used += length
    let id = 0
    at = file.indexOf(0x3a, close) + 1
    while (file[at] === 0x20) at++
    const digits = at
    for (; file[at] >= 0x30 && file[at] <= 0x39; at++) id = 10 * id + file[at] - 0x30
    if (at === digits) throw new SyntaxError(`an id is expected at byte ${at}`)
    ends.push(used)
    ids.push(id)
  }
  return { bytes, ends, ids, texts }
}

/**
 * Calls `take` with the bytes of both parts of each merge, which lie one after the other from 0 on.
 * @returns false when a merge is none of bytes
 * @throws SyntaxError
 */
export function readMerges(
  file: Buffer,
  start: number,
  end: number,
  take: (bytes: Uint8Array, middle: number, length: number) => boolean,
): boolean {
  let bytes = new Uint8Array(1_024)
  let left = -1
  for (let at = file.indexOf(QUOTE, start); at >= 0 && at < end; at = file.indexOf(QUOTE, at)) {
    const close = endOfString(file, at)
    if (bytes.length < 2 * (close - at) + Math.max(left, 0)) bytes = grown(bytes, 2 * (close - at) + left)
    const space = left < 0 ? spaceIn(file, at, close) : -1
    const isBoth = space >= 0
    if (isBoth) {
      const middle = writePiece(file, at, space + 1, bytes, 0)
      const rest = writePiece(file, space, close, bytes, middle)
      if (middle < 0 || rest < 0 || !take(bytes, middle, middle + rest)) return false
    } else {
      const length = writePiece(file, at, close, bytes, Math.max(left, 0))
      if (length < 0) return false
      if (left >= 0 && !take(bytes, left, left + length)) return false
      left = left < 0 ? length : -1
    }
    at = close
  }
  return left < 0
}

/** Looks no further than the string: a file of pairs may have no space at all. */
function spaceIn(file: Buffer, start: number, end: number): number {
  for (let at = start; at < end; at++) if (file[at] === 0x20) return at
  return -1
}

/** One behind the closing quote. */
function endOfString(file: Buffer, start: number): number {
  for (let at = start + 1; at < file.length; at++) {
    if (file[at] === BACKSLASH) at++
    else if (file[at] === QUOTE) return at + 1
  }
  throw new SyntaxError('the file ends inside a string')
}

/** Writes the bytes of the letters between two quotes. @returns their number; -1 for a letter that stands for no byte */
function writePiece(file: Buffer, open: number, close: number, out: Uint8Array, from: number): number {
  let to = from
  for (let at = open + 1; at < close - 1; at++) {
    const unit = file[at]
    let letter = unit
    if (unit === BACKSLASH) {
      letter = file[++at]
      if (letter !== QUOTE && letter !== BACKSLASH && letter !== 0x2f)
        return writeEscaped(file, open, close, out, from)
    } else if (unit > 0x7f) {
      if ((unit & 0xe0) !== 0xc0) return -1
      letter = ((unit & 0x1f) << 6) | (file[++at] & 0x3f)
    }
    const byte = byteOfLetter(letter)
    if (byte < 0) return -1
    out[to++] = byte
  }
  return to - from
}

/** As `writePiece`, for text with other escapes. */
function writeEscaped(file: Buffer, open: number, close: number, out: Uint8Array, from: number): number {
  const text = JSON.parse(`"${file.toString('utf8', open + 1, close - 1)}"`) as string
  for (let at = 0; at < text.length; at++) {
    const byte = byteOfLetter(text.charCodeAt(at))
    if (byte < 0) return -1
    out[from + at] = byte
  }
  return text.length
}

function writeText(file: Buffer, open: number, close: number, out: Uint8Array, from: number): number {
  const text = Buffer.from(JSON.parse(file.toString('utf8', open, close)) as string)
  out.set(text, from)
  return text.length
}

function grown(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 * size)
  larger.set(bytes)
  return larger
}
