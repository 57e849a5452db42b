/** The input of one call; head and body are read on demand. */
import { FRAME_HEAD_BYTES } from './abi'
import * as host from './extism'
import { Headers } from './headers'
import { Json } from './json'
import { readInput } from './memory'

/** First letter of the name `fetched`. */
const FIRST_OF_FETCHED: u8 = 0x66

export class Input {
  private json: Json | null = null
  private bytes: Uint8Array | null = null

  get head(): Json {
    let json = this.json
    if (json === null) {
      const head = readInput(FRAME_HEAD_BYTES, this.bodyStart)
      json = new Json(head, 0, head.length)
      this.json = json
    }
    return json
  }

  private get bodyStart(): i32 {
    const end = this.end
    assert(end >= FRAME_HEAD_BYTES, 'the input is not a frame')
    let headBytes: u32 = 0
    for (let i = 0; i < FRAME_HEAD_BYTES; i++) headBytes |= (<u32>host.input_load_u8(i)) << (i << 3)
    assert(headBytes <= <u32>(end - FRAME_HEAD_BYTES), 'the input is not a frame')
    return FRAME_HEAD_BYTES + <i32>headBytes
  }

  private get end(): i32 {
    return <i32>host.input_length()
  }

  /** Empty without a body, or if `describe` does not require it. */
  get body(): Uint8Array {
    let bytes = this.bytes
    if (bytes === null) {
      bytes = readInput(this.bodyStart, this.end - this.fetchedBytes)
      this.bytes = bytes
    }
    return bytes
  }

  /** Like `body`, for streams and texts: there, the result of a fetch is the first member, so that other heads need not be read. */
  get rest(): Uint8Array {
    const start = this.bodyStart
    if (host.input_load_u8(FRAME_HEAD_BYTES + 2) == FIRST_OF_FETCHED) return this.body
    return readInput(start, this.end)
  }

  /** Body of the fetched response, which follows the body of the phase. */
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

/** One member of the head of the input, found at the first access. */
export class Section {
  private found: Json | null = null

  protected constructor(
    protected input: Input,
    private sectionName: string,
  ) {}

  protected get section(): Json {
    let found = this.found
    if (found === null) {
      found = this.input.section(this.sectionName)
      this.found = found
    }
    return found
  }

  /** The text of a member; null for other values. */
  protected optional(name: string): string | null {
    const value = this.section.find(name)
    return value.isString ? value.text() : null
  }
}
