/** Changes values of a JSON document and leaves every other byte as it was: numbers, order of members, spaces. */
import { ByteBuffer } from './byte-buffer'
import { Json } from './json'
import { fromUtf8 } from './memory'

/** Edits are made from front to back, as a walk over the document meets the values. */
export class JsonEdits {
  private source: Uint8Array
  private buffer: ByteBuffer
  private copied: i32 = 0
  private edits: i32 = 0

  constructor(document: Json) {
    this.source = document.source
    this.buffer = new ByteBuffer(document.source.length + 256)
  }

  get count(): i32 {
    return this.edits
  }

  /** Puts a string in place of a value. */
  setText(value: Json, text: string): void {
    this.copyUpTo(value)
    this.buffer.jsonString(text)
  }

  /** Puts JSON text in place of a value; it must be valid. */
  setRaw(value: Json, json: string): void {
    this.copyUpTo(value)
    this.buffer.text(json)
  }

  toBytes(): Uint8Array {
    this.buffer.slice(this.source, this.copied, this.source.length)
    this.copied = this.source.length
    return this.buffer.toBytes()
  }

  /** Like `toBytes`, as text. */
  toText(): string {
    return fromUtf8(this.toBytes())
  }

  private copyUpTo(value: Json): void {
    assert(value.exists && value.start >= this.copied, 'edits of a JSON document go from front to back')
    this.buffer.slice(this.source, this.copied, value.start)
    this.copied = value.end
    this.edits++
  }
}
