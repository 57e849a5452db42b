/** What a handler of tool calls answers with: let it run, let it run with other arguments, or refuse it. */
import { Action } from './action'
import { toUtf8 } from './memory'
import { outputHead, outputWithBody } from './output'

export class ToolAction {
  private constructor(
    private readonly action: string,
    private readonly body: Uint8Array | null,
    private readonly fetched: Action | null = null,
  ) {}

  /** The tool runs as the model asked. */
  static pass(): ToolAction {
    return new ToolAction('continue', null)
  }

  /** The tool does not run; the model reads the text in place of a result. */
  static reject(text: string): ToolAction {
    return new ToolAction('reject', toUtf8(text))
  }

  /** The tool runs with these arguments, a JSON object; the client is shown what the model wrote. */
  static withArguments(json: string): ToolAction {
    return new ToolAction('modify', toUtf8(json))
  }

  /** Fetches something before it decides, see `Action.fetch`: the handler is called again. */
  static fetch(action: Action): ToolAction {
    return new ToolAction('fetch', null, action)
  }

  /** Hands the action to the host. */
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
