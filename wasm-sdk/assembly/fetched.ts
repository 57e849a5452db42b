/** What came of a fetch that the module asked for in the call before. */
import { Headers } from './headers'
import { Input } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'

export class Fetched {
  private section: Json

  constructor(private input: Input) {
    this.section = input.section('fetched')
  }

  /**
   * Null when there is an answer; otherwise `invalid`, `not_allowed`, `unreachable`, `timeout`, `too_large` or `busy`.
   */
  get error(): string | null {
    const error = this.section.find('error')
    return error.isString ? error.text() : null
  }

  /** 0 without an answer; a redirect is an answer as any other. */
  get status(): i32 {
    return <i32>this.section.find('status').integer()
  }

  get headers(): Headers {
    return this.input.headersOf(this.section)
  }

  get body(): Uint8Array {
    return this.input.fetchedBody
  }

  text(): string {
    return fromUtf8(this.body)
  }

  /** The body as JSON; null when it is none, or nests deeper than 256 levels. */
  json(): Json | null {
    return Json.parse(this.body)
  }
}
