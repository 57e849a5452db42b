/** Replaces values of a JSON document; all other bytes are unchanged. */
import { ByteBuffer } from './byte-buffer'
import { Json } from './json'
import { fromUtf8 } from './memory'

/** Values must be replaced in document order. */
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

  /** Replaces a value by a string. */
  setText(value: Json, text: string): void {
    this.copyUpTo(value)
    this.buffer.jsonString(text)
  }

  /** Replaces a value by JSON text, which must be valid. */
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
    assert(value.exists && value.start >= this.copied, 'values of a JSON document must be replaced in document order')
    this.buffer.slice(this.source, this.copied, value.start)
    this.copied = value.end
    this.edits++
  }
}
