/** Result of the fetch that the previous call requested. */
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
   * Null for a response; otherwise `invalid`, `not_allowed`, `unreachable`, `timeout`, `too_large` or `busy`.
   */
  get error(): string | null {
    const error = this.section.find('error')
    return error.isString ? error.text() : null
  }

  /** 0 without a response. Redirects are not followed. */
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

  /** The body as JSON; null if it is invalid or nested deeper than 256 levels. */
  json(): Json | null {
    return Json.parse(this.body)
  }
}
