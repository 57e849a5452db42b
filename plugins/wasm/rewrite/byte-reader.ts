/** Reads values of the binary format; throws `BadModule` for invalid ones. @source WebAssembly core 2.0, 5.2 */
import { BadModule } from './module-rejected.ts'

export class ByteReader {
  readonly bytes: Uint8Array
  at: number
  readonly end: number

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  get isAtEnd(): boolean {
    return this.at >= this.end
  }

  byte(): number {
    if (this.at >= this.end) throw new BadModule('invalid module: the file ends too early')
    return this.bytes[this.at++]
  }

  /** Unsigned, at most 32 bits. */
  u32(): number {
    let value = 0
    for (let factor = 1; factor <= 2 ** 28; factor *= 128) {
      const byte = this.byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) {
        if (value > 0xffff_ffff) break
        return value
      }
    }
    throw new BadModule('invalid module: a number has more than 32 bits')
  }

  /** Skips a signed number of at most 64 bits. */
  skipSigned(): void {
    for (let count = 0; count < 10; count++) if (this.byte() < 0x80) return
    throw new BadModule('invalid module: a number has more than 64 bits')
  }

  /** Signed, at most 33 bits. */
  s33(): number {
    let value = 0
    for (let factor = 1; factor <= 2 ** 28; factor *= 128) {
      const byte = this.byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return (byte & 0x40) === 0 ? value : value - factor * 128
    }
    throw new BadModule('invalid module: a number has more than 33 bits')
  }

  skip(count: number): void {
    if (count > this.end - this.at) throw new BadModule('invalid module: the file ends too early')
    this.at += count
  }

  name(): string {
    const length = this.u32()
    const start = this.at
    this.skip(length)
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + start, length).toString('utf8')
  }

  list<T>(read: () => T): T[] {
    const count = this.count()
    const entries: T[] = []
    for (let i = 0; i < count; i++) entries.push(read())
    return entries
  }

  /** Length of a list; bounded by the rest of the section, since each entry has at least one byte. */
  count(): number {
    const count = this.u32()
    if (count > this.end - this.at) throw new BadModule('invalid module: a list is longer than its section')
    return count
  }
}
