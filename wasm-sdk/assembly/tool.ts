/** A tool call that the gateway is about to run, and the result of its handler. */
import { Action } from './action'
import { Input, Section } from './input'
import { Json } from './json'
import { fromUtf8, toUtf8 } from './memory'
import { outputHead, outputWithBody } from './output'

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
    return this.optional('label')
  }

  /** Address of the server, or its label if it is configured in the gateway. */
  get server(): string {
    return this.section.find('server').text()
  }

  /** Null if the request has none. */
  get model(): string | null {
    return this.optional('model')
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

/** Result of a handler of tool calls: run the tool, run it with other arguments, or reject the call. */
export class ToolAction {
  private constructor(
    private readonly action: string,
    private readonly body: Uint8Array | null,
    private readonly fetched: Action | null = null,
  ) {}

  /** Runs the tool unchanged. */
  static pass(): ToolAction {
    return new ToolAction('continue', null)
  }

  /** Rejects the call; the text is the result for the model. */
  static reject(text: string): ToolAction {
    return new ToolAction('reject', toUtf8(text))
  }

  /** Runs the tool with these arguments, a JSON object; the client still sees those of the model. */
  static withArguments(json: string): ToolAction {
    return new ToolAction('modify', toUtf8(json))
  }

  /** Fetches before the decision, see `Action.fetch`: the handler is called again. */
  static fetch(action: Action): ToolAction {
    return new ToolAction('fetch', null, action)
  }

  /** Writes the output of the call. */
  send(): void {
    const fetched = this.fetched
    if (fetched !== null) return fetched.send()
    if (this.action == 'continue') return
    const head = outputHead()
    head.key('action').text(this.action)
    if (this.action == 'modify') head.key('replaces_body').bool(true)
    outputWithBody(head.endObject(), this.body)
  }
}
