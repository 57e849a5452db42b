/** The response, in the response and error phases, and the error. */
import { Headers } from './headers'
import { Input, Section } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'

export class Response extends Section {
  constructor(input: Input) {
    super(input, 'response')
  }

  get status(): i32 {
    return <i32>this.section.find('status').integer()
  }

  get headers(): Headers {
    return this.input.headersOf(this.section)
  }

  /** True for an event stream, whose body is not passed. */
  get isStream(): bool {
    return this.section.find('is_stream').bool()
  }

  /** Body of a response that is not a stream; empty unless `describe` requires it. */
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

/** The error, in the error phase. */
export class ErrorInfo extends Section {
  constructor(input: Input) {
    super(input, 'error')
  }

  /** Such as `no_healthy_worker`. */
  get code(): string {
    return this.section.find('code').text()
  }

  get message(): string {
    return this.section.find('message').text()
  }

  get type(): string {
    return this.section.find('type').text()
  }

  get status(): i32 {
    return <i32>this.section.find('status').integer()
  }
}
