/** The call of a tool that the gateway is about to run. */
import { Input } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'

export class ToolCall {
  private found: Json | null = null

  constructor(private input: Input) {}

  private get section(): Json {
    let found = this.found
    if (found === null) {
      found = this.input.section('tool')
      this.found = found
    }
    return found
  }

  /** As its server knows it; the type of a built-in tool. */
  get name(): string {
    return this.section.find('name').text()
  }

  /** Whether the model asks for a tool of a kind that the operator has mapped onto a server. */
  get isBuiltIn(): bool {
    return this.section.find('kind').text() == 'built_in'
  }

  /** Of the server in the request; null for built-in tools. */
  get label(): string | null {
    const label = this.section.find('label')
    return label.isString ? label.text() : null
  }

  /** Address of the server, or its label again where it stands in the configuration. */
  get server(): string {
    return this.section.find('server').text()
  }

  /** Null where the request names none. */
  get model(): string | null {
    const model = this.section.find('model')
    return model.isString ? model.text() : null
  }

  /** The arguments, a JSON object, as text. */
  text(): string {
    return fromUtf8(this.input.body)
  }

  /** The arguments; null when they nest deeper than 256 levels: a guard refuses what it cannot read. */
  json(): Json | null {
    return Json.parse(this.input.body)
  }
}
