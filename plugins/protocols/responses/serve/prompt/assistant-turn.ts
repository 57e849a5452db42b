/** One turn of the assistant: reasoning, text, calls and their results, in the order that chat templates need. */
import type { ChatMessage, ContentPart, NativeObject } from '#kernel'
import { extraContentOf } from '#shared'
import type { SealedText } from './sealed-text.ts'

interface TurnCall {
  /** As the items have it. */
  readonly itemId: string
  /** As the messages have it. */
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly extraContent: { readonly extra_content?: NativeObject }
  result: string | null
}

export class AssistantTurn {
  readonly #usedIds: Set<string>
  readonly #texts: string[] = []
  readonly #calls: TurnCall[] = []
  readonly #pictures: ContentPart[] = []
  #reasoning = ''
  #signature: string | undefined
  #extraContent: { readonly extra_content?: NativeObject } = {}

  /** @param usedIds of all turns */
  constructor(usedIds: Set<string>) {
    this.#usedIds = usedIds
  }

  /** All of its calls have results, so the next item begins another turn. */
  get isAnswered(): boolean {
    return this.#calls.length > 0 && this.unanswered() === null
  }

  addText(text: string): void {
    this.#texts.push(text)
  }

  /** @param extraContent as an item of the turn has it */
  addExtraContent(extraContent: unknown): void {
    this.#extraContent = { ...this.#extraContent, ...extraContentOf(extraContent) }
  }

  addReasoning({ text, signature }: SealedText): void {
    this.#reasoning += text
    this.#signature = signature
  }

  /**
   * @param extraContent as the item has it
   * @returns the id that the messages have
   */
  addCall(itemId: string, name: string, args: string, extraContent?: unknown): string {
    let id = itemId
    for (let count = 2; this.#usedIds.has(id); count += 1) id = `${itemId}_${count}`
    this.#usedIds.add(id)
    this.#calls.push({
      itemId,
      id,
      name,
      arguments: args,
      extraContent: extraContentOf(extraContent),
      result: null,
    })
    return id
  }

  /** @returns false when no call waits for it */
  addResult(itemId: string, text: string, pictures: readonly ContentPart[]): boolean {
    const call = this.#calls.find((one) => one.itemId === itemId && one.result === null)
    if (call === undefined) return false
    call.result = text
    for (const picture of pictures) this.#pictures.push(picture)
    return true
  }

  /** The first call without a result; null when there is none. */
  unanswered(): string | null {
    return this.#calls.find(({ result }) => result === null)?.itemId ?? null
  }

  writeTo(messages: ChatMessage[]): void {
    const content = this.#texts.length === 0 ? null : this.#texts.join('\n')
    if (content === null && this.#calls.length === 0) return
    messages.push({
      role: 'assistant',
      content,
      ...(this.#reasoning !== '' && { reasoning_content: this.#reasoning }),
      ...(this.#signature !== undefined && { reasoning_signature: this.#signature }),
      ...this.#extraContent,
      ...(this.#calls.length > 0 && {
        tool_calls: this.#calls.map(({ id, name, arguments: args, extraContent }) => ({
          id,
          type: 'function' as const,
          function: { name, arguments: args },
          ...extraContent,
        })),
      }),
    })
    for (const { id, result } of this.#calls)
      messages.push({ role: 'tool', tool_call_id: id, content: result ?? '' })
    if (this.#pictures.length > 0) messages.push({ role: 'user', content: this.#pictures })
  }
}
