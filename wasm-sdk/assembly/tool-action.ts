/** Result of a handler of tool calls: run the tool, run it with other arguments, or reject the call. */
import { Action } from './action'
import { toUtf8 } from './memory'
import { outputHead, outputWithBody } from './output'

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
