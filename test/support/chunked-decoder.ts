/** Decodes the chunked transfer coding of a byte stream, for any split into reads. @source RFC 9112 section 7.1 */

const CR = 13
const LF = 10

/** Push network reads in; body bytes are passed to `onBody` without a copy. */
export class ChunkedDecoder {
  /** The last chunk and the empty trailer have been received. */
  isDone = false
  readonly #onBody: (bytes: Buffer) => void
  #state: 'size' | 'data' | 'data-end' | 'trailer' = 'size'
  #line = ''
  #left = 0

  constructor(onBody: (bytes: Buffer) => void) {
    this.#onBody = onBody
  }

  /** @throws if the bytes are not chunked coding */
  push(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      if (this.isDone) throw new Error('bytes after the last chunk')
      at = this.#state === 'data' ? this.#takeData(bytes, at) : this.#takeLineByte(bytes[at], at)
    }
  }

  #takeData(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left)
    this.#left -= end - at
    this.#onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    if (this.#left === 0) this.#state = 'data-end'
    return end
  }

  #takeLineByte(byte: number, at: number): number {
    if (byte === LF) this.#endLine()
    else if (byte !== CR) this.#line += String.fromCharCode(byte)
    return at + 1
  }

  #endLine(): void {
    const line = this.#line
    this.#line = ''
    if (this.#state === 'size') {
      if (!/^[0-9a-f]+(;.*)?$/i.test(line)) throw new Error(`bad chunk size ${JSON.stringify(line)}`)
      this.#left = Number.parseInt(line, 16)
      this.#state = this.#left === 0 ? 'trailer' : 'data'
    } else if (this.#state === 'data-end') {
      if (line !== '') throw new Error(`chunk longer than announced: ${JSON.stringify(line)}`)
      this.#state = 'size'
    } else if (line === '') this.isDone = true
  }
}
