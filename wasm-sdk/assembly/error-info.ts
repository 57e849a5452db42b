/** What went wrong, in the error phase. */
import { Input } from './input'
import { Json } from './json'

export class ErrorInfo {
  private found: Json | null = null

  constructor(private input: Input) {}

  private get section(): Json {
    let found = this.found
    if (found === null) {
      found = this.input.section('error')
      this.found = found
    }
    return found
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
