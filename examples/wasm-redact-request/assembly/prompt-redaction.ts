/** Finds the text of a prompt in the bodies of chat completions, completions, responses and messages. */
import { Json, JsonEdits } from 'weir-gateway/wasm-sdk/assembly'
import { Findings, redact } from './redact'

export class PromptRedaction {
  private edits: JsonEdits
  private findings: Findings = new Findings()

  constructor(body: Json) {
    this.edits = new JsonEdits(body)
    const members = body.members()
    while (members.next()) if (isPrompt(members.key)) this.visit(members.value)
  }

  /** How many values were taken out. */
  get count(): i32 {
    return this.findings.count
  }

  toBytes(): Uint8Array {
    return this.edits.toBytes()
  }

  /** Text, or a list of texts, messages, items or parts. */
  private visit(value: Json): void {
    if (value.isString) this.replace(value)
    else if (value.isObject) this.visitPart(value)
    const elements = value.elements()
    while (elements.next()) this.visit(elements.value)
  }

  /** Only `text` and `content` hold text; URLs, identifiers, arguments of tools and the like stay as they are. */
  private visitPart(part: Json): void {
    const members = part.members()
    while (members.next()) {
      if (members.hasKey('content')) this.visit(members.value)
      else if (members.hasKey('text') && members.value.isString) this.replace(members.value)
    }
  }

  private replace(value: Json): void {
    const text = value.text()
    const before = this.findings.count
    const redacted = redact(text, this.findings)
    if (this.findings.count > before) this.edits.setText(value, redacted)
  }
}

function isPrompt(key: string): bool {
  return key == 'messages' || key == 'input' || key == 'instructions' || key == 'system' || key == 'prompt'
}
