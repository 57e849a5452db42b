/** The request as a module sees it. Members are decoded each time they are asked for: keep what is used often. */
import { Fetched } from './fetched'
import { Headers } from './headers'
import { Input } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'

export class Request {
  private found: Json | null = null

  constructor(private input: Input) {}

  private get section(): Json {
    let found = this.found
    if (found === null) {
      found = this.input.section('request')
      this.found = found
    }
    return found
  }

  get id(): string {
    return this.section.find('id').text()
  }

  get method(): string {
    return this.section.find('method').text()
  }

  get path(): string {
    return this.section.find('path').text()
  }

  /** Without the question mark; empty when there is none. */
  get query(): string {
    return this.section.find('query').text()
  }

  /** Path as the route declares it, such as `/v1/responses/:response_id`. */
  get route(): string {
    return this.section.find('route').text()
  }

  /** Null for callers without a key. */
  get tenant(): string | null {
    const tenant = this.section.find('tenant')
    return tenant.isString ? tenant.text() : null
  }

  get clientIp(): string {
    return this.section.find('client_ip').text()
  }

  /** When the call began, in milliseconds since 1970. */
  get nowMs(): i64 {
    return this.input.section('now_ms').integer()
  }

  get headers(): Headers {
    return this.input.headersOf(this.section)
  }

  /** What came of the fetch that the module asked for; null when it has not asked yet. */
  get fetched(): Fetched | null {
    return this.input.section('fetched').isObject ? new Fetched(this.input) : null
  }

  /** What was kept with the fetch; empty before. */
  get state(): string {
    const state = this.input.section('state')
    return state.isString ? state.text() : ''
  }

  /** Bytes of the body in the request phase; empty unless `describe` says that the module needs it. */
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
