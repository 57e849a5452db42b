/** The input of one call: the head is read at once, the body when somebody asks for it. */
import * as host from './extism'
import { Headers } from './headers'
import { Json } from './json'
import { readInput } from './memory'

const FRAME_HEAD_BYTES = 4

export class Input {
  readonly head: Json
  private bodyStart: i32
  private end: i32
  private bytes: Uint8Array | null = null

  constructor() {
    const end = <i32>host.input_length()
    assert(end >= FRAME_HEAD_BYTES, 'the input is no frame')
    let headBytes: u32 = 0
    for (let i = 0; i < FRAME_HEAD_BYTES; i++) headBytes |= (<u32>host.input_load_u8(i)) << (i << 3)
    assert(headBytes <= <u32>(end - FRAME_HEAD_BYTES), 'the input is no frame')
    const bodyStart = FRAME_HEAD_BYTES + <i32>headBytes
    const head = readInput(FRAME_HEAD_BYTES, bodyStart)
    this.head = new Json(head, 0, head.length)
    this.bodyStart = bodyStart
    this.end = end
  }

  /** Empty when there is none, or when the module does not say in `describe` that it needs it. */
  get body(): Uint8Array {
    let bytes = this.bytes
    if (bytes === null) {
      bytes = readInput(this.bodyStart, this.end - this.fetchedBytes)
      this.bytes = bytes
    }
    return bytes
  }

  /** Of the answer that was fetched: it is behind the body. */
  get fetchedBody(): Uint8Array {
    return readInput(this.end - this.fetchedBytes, this.end)
  }

  private get fetchedBytes(): i32 {
    const fetched = this.head.find('fetched')
    return fetched.isObject ? <i32>fetched.find('body_bytes').integer() : 0
  }

  section(name: string): Json {
    return this.head.find(name)
  }

  headersOf(section: Json): Headers {
    return new Headers(section.find('headers'))
  }
}
