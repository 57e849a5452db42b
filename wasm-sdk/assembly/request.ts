/** The request. Members are decoded at each access: keep those that are used often. */
import { Headers } from './headers'
import { Input, Section } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'

export class Request extends Section {
  constructor(input: Input) {
    super(input, 'request')
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

  /** Without the question mark; empty if there is none. */
  get query(): string {
    return this.section.find('query').text()
  }

  /** Declared path of the route, such as `/v1/responses/:response_id`. */
  get route(): string {
    return this.section.find('route').text()
  }

  /** Null for callers without a key. */
  get tenant(): string | null {
    return this.optional('tenant')
  }

  get clientIp(): string {
    return this.section.find('client_ip').text()
  }

  /** Start of the call, milliseconds since 1970. */
  get nowMs(): i64 {
    return this.input.section('now_ms').integer()
  }

  get headers(): Headers {
    return this.input.headersOf(this.section)
  }

  /** Result of the requested fetch; null before. */
  get fetched(): Fetched | null {
    return this.input.section('fetched').isObject ? new Fetched(this.input) : null
  }

  /** State of the requested fetch; empty before. */
  get state(): string {
    const state = this.input.section('state')
    return state.isString ? state.text() : ''
  }

  /** Body in the request phase; empty unless `describe` requires it. */
  get body(): Uint8Array {
    return this.input.body
  }

  text(): string {
    return fromUtf8(this.input.body)
  }

  /** The body as JSON; null if it is invalid or nested deeper than 256 levels. */
  json(): Json | null {
    return Json.parse(this.input.body)
  }
}

/** Result of the fetch that the previous call requested. */
export class Fetched extends Section {
  constructor(input: Input) {
    super(input, 'fetched')
  }

  /**
   * Null for a response; otherwise `invalid`, `not_allowed`, `unreachable`, `timeout`, `too_large` or `busy`.
   */
  get error(): string | null {
    return this.optional('error')
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
