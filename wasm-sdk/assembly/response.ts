/** The answer as a module sees it, in the response and error phases and for each event of a stream. */
import { Headers } from './headers'
import { Input } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'

export class Response {
  private found: Json | null = null

  constructor(private input: Input) {}

  private get section(): Json {
    let found = this.found
    if (found === null) {
      found = this.input.section('response')
      this.found = found
    }
    return found
  }

  get status(): i32 {
    return <i32>this.section.find('status').integer()
  }

  get headers(): Headers {
    return this.input.headersOf(this.section)
  }

  /** True when the answer is an event stream; its body is not given. */
  get isStream(): bool {
    return this.section.find('is_stream').bool()
  }

  /** Bytes of an unstreamed answer; empty unless `describe` says that the module needs it. */
  get body(): Uint8Array {
    return this.input.body
  }

  text(): string {
    return fromUtf8(this.input.body)
  }

  /** The body as JSON; null when it is none, or nests deeper than 256 levels. */
  json(): Json | null {
    return Json.parse(this.input.body)
  }
}
