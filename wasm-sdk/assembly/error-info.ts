/** What went wrong, in the error phase. */
import { Input } from './input'
import { Json } from './json'

export class ErrorInfo {
  private section: Json

  constructor(input: Input) {
    this.section = input.section('error')
  }

  /** What is wrong, such as `no_healthy_worker`. */
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
