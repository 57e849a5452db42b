/** One server-sent event of a streamed answer. */
import { Input } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'

export class StreamEvent {
  private found: Json | null = null

  constructor(private input: Input) {}

  private get section(): Json {
    let found = this.found
    if (found === null) {
      found = this.input.section('event')
      this.found = found
    }
    return found
  }

  /** 0-based in the stream. */
  get index(): i32 {
    return <i32>this.section.find('index').integer()
  }

  /** Value of the `event:` field, or null. */
  get name(): string | null {
    const name = this.section.find('name')
    return name.isString ? name.text() : null
  }

  /** The stream has ended: there is no data, but events may still be added. */
  get isEnd(): bool {
    return this.section.find('is_end').bool()
  }

  /** What the action of the event before kept; empty at first. */
  get state(): string {
    return this.input.section('state').text()
  }

  get data(): string {
    return fromUtf8(this.input.rest)
  }

  /** The data as JSON; null when it is none, or nests deeper than 256 levels. */
  json(): Json | null {
    return Json.parse(this.input.rest)
  }
}
