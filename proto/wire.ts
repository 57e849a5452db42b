/**
 * The protobuf wire: what the generated codecs write with and read with. @hot
 * @source https://protobuf.dev/programming-guides/encoding/
 */

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5
/** Values within values of a Struct are followed this far. */
const MAX_DEPTH = 32
/**
 * Items of one list. A list has at most one item per token, and the longest messages have 262,144 tokens; reading a list of
 * this length takes some 20 ms.
 */
const MAX_ITEMS = 524_288

/** Bytes that are no message. */
export class WireError extends Error {}

export class Writer {
  private buffer: Buffer
  private at = 0

  /** @param size a guess in bytes; it grows */
  constructor(size = 256) {
    this.buffer = Buffer.allocUnsafe(size)
  }

  /** What was written; the memory is the caller's. */
  finish(): Buffer {
    return this.buffer.subarray(0, this.at)
  }

  private room(bytes: number): void {
    if (this.at + bytes <= this.buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.at + bytes))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }

  /** @param value 0 to 2^32 - 1 */
  varint(value: number): void {
    this.room(5)
    let rest = value >>> 0
    while (rest > 0x7f) {
      this.buffer[this.at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.buffer[this.at++] = rest
  }

  uint32(tag: number, value: number): void {
    this.varint(tag)
    this.varint(value)
  }

  /** Negative numbers take ten bytes, as the wire has it. */
  int32(tag: number, value: number): void {
    this.varint(tag)
    this.signed(value)
  }

  private signed(value: number): void {
    if (value >= 0) this.varint(value)
    else this.big(BigInt(value))
  }

  int64(tag: number, value: bigint): void {
    this.varint(tag)
    this.big(value)
  }

  private big(value: bigint): void {
    this.room(10)
    let rest = BigInt.asUintN(64, value)
    while (rest > 0x7fn) {
      this.buffer[this.at++] = Number(rest & 0x7fn) | 0x80
      rest >>= 7n
    }
    this.buffer[this.at++] = Number(rest)
  }

  bool(tag: number, value: boolean): void {
    this.varint(tag)
    this.varint(value ? 1 : 0)
  }

  float(tag: number, value: number): void {
    this.varint(tag)
    this.room(4)
    this.at = this.buffer.writeFloatLE(value, this.at)
  }

  double(tag: number, value: number): void {
    this.varint(tag)
    this.room(8)
    this.at = this.buffer.writeDoubleLE(value, this.at)
  }

  string(tag: number, value: string): void {
    this.varint(tag)
    const length = Buffer.byteLength(value)
    this.varint(length)
    this.room(length)
    this.at += this.buffer.write(value, this.at, length, 'utf8')
  }

  bytes(tag: number, value: Buffer): void {
    this.varint(tag)
    this.varint(value.length)
    this.room(value.length)
    this.at += value.copy(this.buffer, this.at)
  }

  /** Begins something whose length stands before it. @returns for `end` */
  begin(tag: number): number {
    this.varint(tag)
    this.room(1)
    return this.at++
  }

  end(start: number): void {
    const length = this.at - start - 1
    let extra = 0
    for (let rest = length >>> 7; rest > 0; rest >>>= 7) extra++
    if (extra > 0) {
      this.room(extra)
      this.buffer.copyWithin(start + 1 + extra, start + 1, this.at)
    }
    const end = this.at + extra
    this.at = start
    this.varint(length)
    this.at = end
  }

  uint32s(tag: number, values: ArrayLike<number>): void {
    const start = this.begin(tag)
    for (let i = 0; i < values.length; i++) this.varint(values[i])
    this.end(start)
  }

  int32s(tag: number, values: ArrayLike<number>): void {
    const start = this.begin(tag)
    for (let i = 0; i < values.length; i++) this.signed(values[i])
    this.end(start)
  }

  int64s(tag: number, values: readonly bigint[]): void {
    const start = this.begin(tag)
    for (const value of values) this.big(value)
    this.end(start)
  }

  floats(tag: number, values: ArrayLike<number>): void {
    this.varint(tag)
    this.varint(values.length * 4)
    this.room(values.length * 4)
    for (let i = 0; i < values.length; i++) this.at = this.buffer.writeFloatLE(values[i], this.at)
  }

  doubles(tag: number, values: ArrayLike<number>): void {
    this.varint(tag)
    this.varint(values.length * 8)
    this.room(values.length * 8)
    for (let i = 0; i < values.length; i++) this.at = this.buffer.writeDoubleLE(values[i], this.at)
  }
}

export class Reader {
  at = 0
  readonly buffer: Buffer

  constructor(buffer: Buffer) {
    this.buffer = buffer
  }

  /** The low 32 bits of a varint. @throws WireError */
  uint32(): number {
    const { buffer } = this
    let byte = buffer[this.at++]
    if (byte < 0x80) return byte
    let value = byte & 0x7f
    for (let shift = 7; shift < 70; shift += 7) {
      if (this.at >= buffer.length) throw new WireError('a number is cut off')
      byte = buffer[this.at++]
      if (shift < 32) value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value >>> 0
    }
    throw new WireError('a number does not end')
  }

  int32(): number {
    return this.uint32() | 0
  }

  uint64(): bigint {
    const { buffer } = this
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.at >= buffer.length) throw new WireError('a number is cut off')
      const byte = buffer[this.at++]
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new WireError('a number does not end')
  }

  int64(): bigint {
    return BigInt.asIntN(64, this.uint64())
  }

  bool(): boolean {
    return this.uint32() !== 0
  }

  float(): number {
    this.need(4)
    const value = this.buffer.readFloatLE(this.at)
    this.at += 4
    return value
  }

  double(): number {
    this.need(8)
    const value = this.buffer.readDoubleLE(this.at)
    this.at += 8
    return value
  }

  /** Where what follows ends. @throws WireError when that is beyond the bytes */
  end(): number {
    const length = this.uint32()
    this.need(length)
    return this.at + length
  }

  private need(bytes: number): void {
    if (this.at + bytes > this.buffer.length) throw new WireError('a field is cut off')
  }

  string(): string {
    const end = this.end()
    const text = this.buffer.toString('utf8', this.at, end)
    this.at = end
    return text
  }

  /** A copy: what was read may be overwritten. */
  bytes(): Buffer {
    const end = this.end()
    const copy = Buffer.from(this.buffer.subarray(this.at, end))
    this.at = end
    return copy
  }

  /** Appends to a list of the message. @throws WireError if the list is too long */
  add<Item>(list: Item[], item: Item): void {
    if (list.length === MAX_ITEMS) throw new WireError(`a list has more than ${MAX_ITEMS} items`)
    list.push(item)
  }

  /** Token ids: read in one loop, since an engine may send hundreds of thousands in a message. bench: liveness-under-attack */
  uint32s(into: number[]): void {
    const end = this.end()
    const { buffer } = this
    let { at } = this
    while (at < end) {
      if (into.length === MAX_ITEMS) throw new WireError(`a list has more than ${MAX_ITEMS} items`)
      const byte = buffer[at]
      if (byte < 0x80) {
        into.push(byte)
        at++
      } else {
        this.at = at
        into.push(this.uint32())
        at = this.at
      }
    }
    this.at = at
  }

  int32s(into: number[]): void {
    for (const end = this.end(); this.at < end; ) this.add(into, this.int32())
  }

  int64s(into: bigint[]): void {
    for (const end = this.end(); this.at < end; ) this.add(into, this.int64())
  }

  floats(into: number[]): void {
    for (const end = this.end(); this.at < end; ) this.add(into, this.float())
  }

  doubles(into: number[]): void {
    for (const end = this.end(); this.at < end; ) this.add(into, this.double())
  }

  /** Passes over a field that nobody knows. @param tag with its kind in the low bits */
  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        this.uint64()
        return
      case FIXED64:
        this.need(8)
        this.at += 8
        return
      case BYTES:
        this.at = this.end()
        return
      case FIXED32:
        this.need(4)
        this.at += 4
        return
      default:
        throw new WireError(`a field is of kind ${tag & 7}`)
    }
  }

  /** After a message's fields. @throws WireError when the last one went beyond its end */
  close(end: number): void {
    if (this.at !== end) throw new WireError('a message does not end where it says')
  }
}

/** `google.protobuf.Struct`; members that are undefined are left out. */
export function writeStruct(writer: Writer, value: Readonly<Record<string, unknown>>): void {
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    const start = writer.begin(10)
    writer.string(10, name)
    const at = writer.begin(18)
    writeValue(writer, member)
    writer.end(at)
    writer.end(start)
  }
}

function writeValue(writer: Writer, value: unknown): void {
  if (typeof value === 'number') writer.double(17, value)
  else if (typeof value === 'string') writer.string(26, value)
  else if (typeof value === 'boolean') writer.bool(32, value)
  else if (Array.isArray(value)) {
    const list = writer.begin(50)
    for (const item of value) {
      const start = writer.begin(10)
      writeValue(writer, item)
      writer.end(start)
    }
    writer.end(list)
  } else if (typeof value === 'object' && value !== null) {
    const start = writer.begin(42)
    writeStruct(writer, value as Record<string, unknown>)
    writer.end(start)
  } else writer.uint32(8, 0)
}

/** An object without a prototype: its names are a stranger's. @throws WireError */
export function readStruct(reader: Reader, end: number, depth = 0): Record<string, unknown> {
  if (depth > MAX_DEPTH) throw new WireError('values are nested too deeply')
  const value: Record<string, unknown> = Object.create(null)
  while (reader.at < end) {
    const tag = reader.uint32()
    if (tag !== 10) {
      reader.skip(tag)
      continue
    }
    const entryEnd = reader.end()
    let name = ''
    let member: unknown = null
    while (reader.at < entryEnd) {
      const entryTag = reader.uint32()
      if (entryTag === 10) name = reader.string()
      else if (entryTag === 18) member = readValue(reader, reader.end(), depth)
      else reader.skip(entryTag)
    }
    value[name] = member
  }
  return value
}

function readValue(reader: Reader, end: number, depth: number): unknown {
  let value: unknown = null
  while (reader.at < end) {
    const tag = reader.uint32()
    if (tag === 17) value = reader.double()
    else if (tag === 26) value = reader.string()
    else if (tag === 32) value = reader.bool()
    else if (tag === 42) value = readStruct(reader, reader.end(), depth + 1)
    else if (tag === 50) value = readList(reader, reader.end(), depth + 1)
    else reader.skip(tag)
  }
  return value
}

function readList(reader: Reader, end: number, depth: number): unknown[] {
  if (depth > MAX_DEPTH) throw new WireError('values are nested too deeply')
  const list: unknown[] = []
  while (reader.at < end) {
    const tag = reader.uint32()
    if (tag === 10) reader.add(list, readValue(reader, reader.end(), depth))
    else reader.skip(tag)
  }
  return list
}

/** `google.protobuf.Timestamp` as milliseconds since 1970. */
export function writeTimestamp(writer: Writer, atMs: number): void {
  const seconds = Math.floor(atMs / 1000)
  writer.int64(8, BigInt(seconds))
  writer.int32(16, Math.round((atMs - seconds * 1000) * 1e6))
}

export function readTimestamp(reader: Reader, end: number): number {
  let atMs = 0
  while (reader.at < end) {
    const tag = reader.uint32()
    if (tag === 8) atMs += Number(reader.int64()) * 1000
    else if (tag === 16) atMs += reader.int32() / 1e6
    else reader.skip(tag)
  }
  return atMs
}
