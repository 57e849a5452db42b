/** A tool call that the gateway is about to run. */
import { Input } from './input'
import { Json } from './json'
import { fromUtf8 } from './memory'
import { Section } from './section'

export class ToolCall extends Section {
  constructor(input: Input) {
    super(input, 'tool')
  }

  /** Name on the server; the type of a built-in tool. */
  get name(): string {
    return this.section.find('name').text()
  }

  /** Returns true for a built-in tool that the operator mapped to a server. */
  get isBuiltIn(): bool {
    return this.section.find('kind').text() == 'built_in'
  }

  /** Label of the server in the request; null for built-in tools. */
  get label(): string | null {
    const label = this.section.find('label')
    return label.isString ? label.text() : null
  }

  /** Address of the server, or its label if it is configured in the gateway. */
  get server(): string {
    return this.section.find('server').text()
  }

  /** Null if the request has none. */
  get model(): string | null {
    const model = this.section.find('model')
    return model.isString ? model.text() : null
  }

  /** The arguments as JSON text, an object. */
  text(): string {
    return fromUtf8(this.input.body)
  }

  /** The arguments; null if they are nested deeper than 256 levels: a guard should reject what it cannot read. */
  json(): Json | null {
    return Json.parse(this.input.body)
  }
}
