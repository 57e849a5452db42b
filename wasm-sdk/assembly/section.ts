/** One member of the head of the input, found at the first access. */
import { Input } from './input'
import { Json } from './json'

export class Section {
  private found: Json | null = null

  protected constructor(
    protected input: Input,
    private sectionName: string,
  ) {}

  protected get section(): Json {
    let found = this.found
    if (found === null) {
      found = this.input.section(this.sectionName)
      this.found = found
    }
    return found
  }
}
