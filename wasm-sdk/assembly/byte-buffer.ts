/** A growing buffer of bytes. */
import { decodeUtf8, encodeUtf8 } from './memory'

/** UTF-16 units that are written at once, and the maximum number of bytes per unit. */
const PART_UNITS = 64
const MAX_UNIT_BYTES = 6
/** Maximum number of bytes per unit outside of JSON. */
const MAX_TEXT_UNIT_BYTES = 3
/** Maximum size of a cleared buffer, bytes. */
const MAX_KEPT_BYTES = 65_536

export class ByteBuffer {
  private block: ArrayBuffer
  /** Address of the next byte. */
  private at: usize
  private limit: usize

  constructor(capacity: i32 = 256) {
    const block = emptyBlock(capacity)
    this.block = block
    this.at = changetype<usize>(block)
    this.limit = changetype<usize>(block) + capacity
  }

  get length(): i32 {
    return <i32>(this.at - this.start)
  }

  /** Address of the bytes, valid until the next write. */
  get start(): usize {
    return changetype<usize>(this.block)
  }

  /** Discards the content. */
  clear(): void {
    if (this.block.byteLength > MAX_KEPT_BYTES) this.moveTo(emptyBlock(MAX_KEPT_BYTES), 0)
    else this.at = this.start
  }

  /** Makes room for `count` bytes. @returns their address; set `at` to the end of what is written */
  private reserve(count: i32): usize {
    const length = this.length
    if (this.at + count > this.limit) {
      const next = emptyBlock(max(length + count, this.block.byteLength * 2))
      memory.copy(changetype<usize>(next), this.start, length)
      this.moveTo(next, length)
    }
    return this.at
  }

  private moveTo(block: ArrayBuffer, length: i32): void {
    this.block = block
    this.at = changetype<usize>(block) + length
    this.limit = changetype<usize>(block) + block.byteLength
  }

  byte(value: u8): void {
    let at = this.at
    if (at == this.limit) at = this.reserve(1)
    store<u8>(at, value)
    this.at = at + 1
  }

  u32(value: u32): void {
    const at = this.reserve(4)
    store<u32>(at, value)
    this.at = at + 4
  }

  /** Overwrites four bytes written before. */
  setU32(place: i32, value: u32): void {
    store<u32>(this.start + place, value)
  }

  /** Bytes `from` up to `to` of an array. */
  slice(source: Uint8Array, from: i32, to: i32): void {
    if (to <= from) return
    const at = this.reserve(to - from)
    memory.copy(at, source.dataStart + from, to - from)
    this.at = at + (to - from)
  }

  /** UTF-8; a lone surrogate becomes the replacement character. */
  text(text: string): void {
    const length = text.length
    const source = changetype<usize>(text)
    const ascii = this.reserve(length)
    let i = 0
    for (; i + 4 <= length; i += 4) {
      const four = load<u64>(source + (<usize>i << 1))
      if ((four & 0xff80_ff80_ff80_ff80) != 0) break
      store<u32>(ascii + i, packed(four))
    }
    this.at = ascii + i
    if (i == length) return
    const rest = this.reserve((length - i) * MAX_TEXT_UNIT_BYTES)
    this.at = rest + encodeUtf8(source + (<usize>i << 1), length - i, rest)
  }

  /** A JSON string with its quotes; a lone surrogate is written as an escape. */
  jsonString(text: string): void {
    const length = text.length
    let to = this.reserve((min(length, PART_UNITS) + 1) * MAX_UNIT_BYTES + 1)
    store<u8>(to++, 0x22)
    for (let i = 0; i < length; ) {
      const stop = min(length, i + PART_UNITS)
      while (i < stop) {
        if (i + 4 <= stop) {
          const four = load<u64>(changetype<usize>(text) + (<usize>i << 1))
          if (isPlain(four)) {
            store<u32>(to, packed(four))
            to += 4
            i += 4
            continue
          }
        }
        const unit = <u32>load<u16>(changetype<usize>(text) + (<usize>i << 1))
        if (unit < 0x80) {
          if (unit < 0x20) to = control(to, unit)
          else {
            if (unit == 0x22 || unit == 0x5c) store<u8>(to++, 0x5c)
            store<u8>(to++, <u8>unit)
          }
        } else if (unit < 0x800) {
          store<u8>(to, <u8>(0xc0 | (unit >> 6)))
          store<u8>(to, <u8>(0x80 | (unit & 0x3f)), 1)
          to += 2
        } else if ((unit & 0xf800) != 0xd800) {
          store<u8>(to, <u8>(0xe0 | (unit >> 12)))
          store<u8>(to, <u8>(0x80 | ((unit >> 6) & 0x3f)), 1)
          store<u8>(to, <u8>(0x80 | (unit & 0x3f)), 2)
          to += 3
        } else {
          const next = i + 1 < length ? <u32>text.charCodeAt(i + 1) : 0
          if (unit < 0xdc00 && (next & 0xfc00) == 0xdc00) {
            const point = 0x10000 + ((unit & 0x3ff) << 10) + (next & 0x3ff)
            store<u8>(to, <u8>(0xf0 | (point >> 18)))
            store<u8>(to, <u8>(0x80 | ((point >> 12) & 0x3f)), 1)
            store<u8>(to, <u8>(0x80 | ((point >> 6) & 0x3f)), 2)
            store<u8>(to, <u8>(0x80 | (point & 0x3f)), 3)
            to += 4
            i++
          } else to = escape(to, unit)
        }
        i++
      }
      this.at = to
      // For the next part, which a surrogate pair may exceed by one unit, and the closing quote.
      if (i < length) to = this.reserve((min(length - i, PART_UNITS) + 1) * MAX_UNIT_BYTES)
    }
    store<u8>(to, 0x22)
    this.at = to + 1
  }

  /** A copy of the content. */
  toBytes(): Uint8Array {
    const length = this.length
    const bytes = new Uint8Array(length)
    memory.copy(bytes.dataStart, this.start, length)
    return bytes
  }

  /** The content as text. */
  toText(): string {
    return decodeUtf8(this.start, this.length)
  }
}

/** Without clearing the bytes. */
// @ts-ignore: decorator
@inline
function emptyBlock(bytes: i32): ArrayBuffer {
  return changetype<ArrayBuffer>(__new(bytes, idof<ArrayBuffer>()))
}

/** Writes a control character, with the short escape if there is one. @returns address of the next byte */
function control(to: usize, unit: u32): usize {
  let letter: u8 = 0
  if (unit == 0x0a) letter = 0x6e
  else if (unit == 0x0d) letter = 0x72
  else if (unit == 0x09) letter = 0x74
  else if (unit == 0x08) letter = 0x62
  else if (unit == 0x0c) letter = 0x66
  if (letter == 0) return escape(to, unit)
  store<u8>(to, 0x5c)
  store<u8>(to, letter, 1)
  return to + 2
}

function escape(to: usize, unit: u32): usize {
  store<u8>(to, 0x5c)
  store<u8>(to, 0x75, 1)
  for (let place = 0; place < 4; place++) {
    const digit = (unit >> (12 - (place << 2))) & 15
    store<u8>(to + place, <u8>(digit < 10 ? 0x30 + digit : 0x57 + digit), 2)
  }
  return to + 6
}

/** Returns true for four ASCII units that need no escape. */
// @ts-ignore: decorator
@inline
function isPlain(four: u64): bool {
  if ((four & 0xff80_ff80_ff80_ff80) != 0) return false
  const quote = four ^ 0x0022_0022_0022_0022
  const backslash = four ^ 0x005c_005c_005c_005c
  // A unit below the subtrahend borrows from its highest bit, which is 0 in ASCII.
  const borrowed =
    (four - 0x0020_0020_0020_0020) | (quote - 0x0001_0001_0001_0001) | (backslash - 0x0001_0001_0001_0001)
  return (borrowed & 0x8000_8000_8000_8000) == 0
}

/** The low bytes of four units. */
// @ts-ignore: decorator
@inline
function packed(four: u64): u32 {
  const pairs = (four | (four >> 8)) & 0x0000_ffff_0000_ffff
  return <u32>(pairs | (pairs >> 16))
}
