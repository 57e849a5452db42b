/** The error, in the error phase. */
import { Input } from './input'
import { Section } from './section'

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
