/** The texts of a request to a model, the same for every client format, with what the handler puts in their place. */
import { Action, ActionKind } from './action'
import { Input, Section } from './input'
import { Json } from './json'
import { JsonWriter } from './json-writer'

/** One text; assign `text` to replace it. */
export class PromptText {
  private changed: string | null = null

  constructor(private readonly entry: Json) {}

  /** Such as `user`, `assistant`, `system` or `tool`; null for descriptions of tools, inputs of embeddings and others without one. */
  get role(): string | null {
    const role = this.entry.find('role')
    return role.isString ? role.text() : null
  }

  /** Where it is in the request to the worker, such as `messages.2.content.0.text`. */
  get place(): string {
    return this.entry.find('place').text()
  }

  get text(): string {
    const changed = this.changed
    return changed === null ? this.entry.find('text').text() : changed
  }

  set text(value: string) {
    this.changed = value
  }

  get replacement(): string | null {
    return this.changed
  }
}

export class Prompt extends Section {
  /** In the order of the request; each text of a role once. */
  readonly texts: PromptText[] = []

  constructor(input: Input) {
    super(input, 'prompt')
    const entries = new Json(input.body, 0, input.body.length).elements()
    while (entries.next()) this.texts.push(new PromptText(entries.value))
  }

  /** The prompt is that of a question of a module, which may not ask again. */
  get isQuestion(): bool {
    return this.section.find('is_question').bool()
  }

  /** Writes the output of the call: the action, or the replaced texts if it passes. */
  send(action: Action): void {
    if (action.kind != ActionKind.Pass) return action.send()
    const json = new JsonWriter().beginArray()
    let isChanged = false
    for (let i = 0; i < this.texts.length; i++) {
      const replacement = this.texts[i].replacement
      json.textOrNull(replacement)
      if (replacement !== null) isChanged = true
    }
    if (isChanged) Action.modify().withBody(json.endArray().toBytes()).send()
  }
}
