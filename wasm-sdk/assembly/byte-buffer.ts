/** Bytes that grow at the end; what writers write into. */
import { toUtf8 } from './memory'

export class ByteBuffer {
  private bytes: Uint8Array
  private used: i32 = 0

  constructor(capacity: i32 = 256) {
    this.bytes = new Uint8Array(capacity)
  }

  get length(): i32 {
    return this.used
  }

  /** @returns where the next `count` bytes may be written; call `advance` with what was */
  private reserve(count: i32): usize {
    const wanted = this.used + count
    if (wanted > this.bytes.length) {
      const next = new Uint8Array(max(wanted, this.bytes.length * 2))
      memory.copy(next.dataStart, this.bytes.dataStart, this.used)
      this.bytes = next
    }
    return this.bytes.dataStart + this.used
  }

  byte(value: u8): void {
    store<u8>(this.reserve(1), value)
    this.used++
  }

  u32(value: u32): void {
    store<u32>(this.reserve(4), value)
    this.used += 4
  }

  /** Overwrites four bytes written before. */
  setU32(at: i32, value: u32): void {
    store<u32>(this.bytes.dataStart + at, value)
  }

  /** Bytes `from` up to `to` of another array. */
  slice(source: Uint8Array, from: i32, to: i32): void {
    if (to <= from) return
    memory.copy(this.reserve(to - from), source.dataStart + from, to - from)
    this.used += to - from
  }

  text(text: string): void {
    const bytes = toUtf8(text)
    this.slice(bytes, 0, bytes.length)
  }

  /** Text inside a JSON string, without its quotes; a lone surrogate is written as an escape. */
  jsonText(text: string): void {
    for (let i = 0, length = text.length; i < length; i++) {
      const unit = <u32>text.charCodeAt(i)
      if (unit < 0x80) {
        if (unit == 0x22 || unit == 0x5c) this.byte(0x5c)
        if (unit < 0x20) this.control(unit)
        else this.byte(<u8>unit)
      } else if (unit < 0x800) {
        this.byte(<u8>(0xc0 | (unit >> 6)))
        this.byte(<u8>(0x80 | (unit & 0x3f)))
      } else if ((unit & 0xf800) != 0xd800) {
        this.byte(<u8>(0xe0 | (unit >> 12)))
        this.byte(<u8>(0x80 | ((unit >> 6) & 0x3f)))
        this.byte(<u8>(0x80 | (unit & 0x3f)))
      } else {
        const next = i + 1 < length ? <u32>text.charCodeAt(i + 1) : 0
        if (unit < 0xdc00 && (next & 0xfc00) == 0xdc00) {
          const point = 0x10000 + ((unit & 0x3ff) << 10) + (next & 0x3ff)
          this.byte(<u8>(0xf0 | (point >> 18)))
          this.byte(<u8>(0x80 | ((point >> 12) & 0x3f)))
          this.byte(<u8>(0x80 | ((point >> 6) & 0x3f)))
          this.byte(<u8>(0x80 | (point & 0x3f)))
          i++
        } else this.escape(unit)
      }
    }
  }

  /** The five that have a letter get it: line ends are frequent. */
  private control(unit: u32): void {
    let letter: u8 = 0
    if (unit == 0x0a) letter = 0x6e
    else if (unit == 0x0d) letter = 0x72
    else if (unit == 0x09) letter = 0x74
    else if (unit == 0x08) letter = 0x62
    else if (unit == 0x0c) letter = 0x66
    if (letter == 0) {
      this.escape(unit)
    } else {
      this.byte(0x5c)
      this.byte(letter)
    }
  }

  private escape(unit: u32): void {
    this.byte(0x5c)
    this.byte(0x75)
    for (let shift = 12; shift >= 0; shift -= 4) {
      const digit = (unit >> shift) & 15
      this.byte(<u8>(digit < 10 ? 0x30 + digit : 0x57 + digit))
    }
  }

  /** What was written, as a copy of exactly its length. */
  toBytes(): Uint8Array {
    const bytes = new Uint8Array(this.used)
    memory.copy(bytes.dataStart, this.bytes.dataStart, this.used)
    return bytes
  }

  /** Hands the bytes to the host; no copy in between. */
  toView(): Uint8Array {
    return this.bytes.subarray(0, this.used)
  }
}
