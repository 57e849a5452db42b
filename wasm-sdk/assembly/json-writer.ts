/** Writes JSON as UTF-8 with commas; the caller is responsible for correct nesting. */
import { ByteBuffer } from './byte-buffer'
import { Json } from './json'

export class JsonWriter {
  private needsComma: bool = false

  constructor(readonly buffer: ByteBuffer = new ByteBuffer()) {}

  beginObject(): JsonWriter {
    return this.open(0x7b)
  }

  /** Begins an object with members given as JSON, independent of what was written before. */
  beginDocument(members: string): JsonWriter {
    this.buffer.byte(0x7b)
    this.buffer.text(members)
    this.needsComma = members.length > 0
    return this
  }

  endObject(): JsonWriter {
    return this.close(0x7d)
  }

  beginArray(): JsonWriter {
    return this.open(0x5b)
  }

  endArray(): JsonWriter {
    return this.close(0x5d)
  }

  key(name: string): JsonWriter {
    this.quoted(name)
    this.buffer.byte(0x3a)
    this.needsComma = false
    return this
  }

  text(value: string): JsonWriter {
    this.quoted(value)
    return this
  }

  /** A string or null. */
  textOrNull(value: string | null): JsonWriter {
    return value === null ? this.word('null') : this.text(value)
  }

  integer(value: i64): JsonWriter {
    return this.word(value.toString())
  }

  /** Infinities and NaN, which JSON lacks, are written as null. */
  number(value: f64): JsonWriter {
    return this.word(isFinite(value) ? value.toString() : 'null')
  }

  bool(value: bool): JsonWriter {
    return this.word(value ? 'true' : 'false')
  }

  nil(): JsonWriter {
    return this.word('null')
  }

  /** Copies the bytes of a value of another document; writes null if it does not exist. */
  copy(value: Json): JsonWriter {
    if (!value.exists) return this.nil()
    this.separate()
    this.buffer.slice(value.source, value.start, value.end)
    return this
  }

  toBytes(): Uint8Array {
    return this.buffer.toBytes()
  }

  toString(): string {
    return this.buffer.toText()
  }

  private separate(): void {
    if (this.needsComma) this.buffer.byte(0x2c)
    this.needsComma = true
  }

  private open(bracket: u8): JsonWriter {
    this.separate()
    this.buffer.byte(bracket)
    this.needsComma = false
    return this
  }

  private close(bracket: u8): JsonWriter {
    this.buffer.byte(bracket)
    this.needsComma = true
    return this
  }

  private quoted(text: string): void {
    this.separate()
    this.buffer.jsonString(text)
  }

  private word(ascii: string): JsonWriter {
    this.separate()
    this.buffer.text(ascii)
    return this
  }
}
