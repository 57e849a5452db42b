/** Writes values of the binary format into a growing buffer. */
import { type Code, unsigned } from './code.ts'

export class ByteWriter {
  #bytes = new Uint8Array(1_024)
  length = 0

  byte(value: number): void {
    if (this.length === this.#bytes.length) this.#room(1)
    this.#bytes[this.length++] = value
  }

  write(...codes: readonly Code[]): void {
    for (const code of codes) for (const value of code) this.byte(value)
  }

  copy(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const count = to - from
    this.#room(count)
    // Faster than `set` for a few bytes.
    if (count < 16) for (let i = from; i < to; i++) this.#bytes[this.length++] = bytes[i]
    else {
      this.#bytes.set(bytes.subarray(from, to), this.length)
      this.length += count
    }
  }

  u32(value: number): void {
    this.write(unsigned(value))
  }

  name(text: string): void {
    const bytes = Buffer.from(text)
    this.u32(bytes.length)
    this.copy(bytes)
  }

  /** A view, valid until the next write. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  clear(): void {
    this.length = 0
  }

  #room(count: number): void {
    if (this.length + count <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.length + count))
    larger.set(this.#bytes.subarray(0, this.length))
    this.#bytes = larger
  }
}
