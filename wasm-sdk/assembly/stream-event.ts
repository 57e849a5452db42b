/** One server-sent event of a streamed response. */
import { Input } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'
import { Section } from './section'

export class StreamEvent extends Section {
  constructor(input: Input) {
    super(input, 'event')
  }

  /** 0-based in the stream. */
  get index(): i32 {
    return <i32>this.section.find('index').integer()
  }

  /** Value of the `event:` field; null if there is none. */
  get name(): string | null {
    const name = this.section.find('name')
    return name.isString ? name.text() : null
  }

  /** The stream has ended: there is no data, but events may be added. */
  get isEnd(): bool {
    return this.section.find('is_end').bool()
  }

  /** State of the previous call of this stream; empty at first. */
  get state(): string {
    return this.input.section('state').text()
  }

  get data(): string {
    return fromUtf8(this.input.rest)
  }

  /** The data as JSON; null if it is invalid or nested deeper than 256 levels. */
  json(): Json | null {
    return Json.parse(this.input.rest)
  }
}
