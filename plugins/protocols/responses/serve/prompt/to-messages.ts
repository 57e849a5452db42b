/**
 * Items as the messages of a chat: turns of the assistant with their calls, each call with exactly one result behind it.
 */
import type { CalledTool, ChatMessage, ContentPart, HistoryItem } from '#kernel'
import { customArguments, imageNote, memberName } from '#shared'
import { responsesErrors } from '../../errors.ts'
import { namesFound, SEARCH_OUTPUT, SEARCH_TOOL } from '../read/stand-ins.ts'
import { AssistantTurn } from './assistant-turn.ts'
import { findSummary, isForeignSummary, summaryMessage } from './compaction.ts'
import { type Part, textOf, toChatContent } from './content-parts.ts'
import { type GatewayCall, GatewayCalls } from './gateway-calls.ts'
import { requireOpened, type SealedText, type Unsealer } from './sealed-text.ts'

export interface PromptMessages {
  readonly messages: readonly ChatMessage[]
  /** Calls in the history that the gateway ran, by id. */
  readonly origins: ReadonlyMap<string, CalledTool>
  /** Items of reasoning that are not in the messages, because their encrypted content could not be opened. */
  readonly droppedReasoning: number
}

/**
 * @param isNative workers get the items themselves too, with summaries that the gateway cannot open
 * @throws missing_tool_output, orphan_tool_output, invalid_encrypted_content of a compaction (400)
 */
export function toMessages(
  instructions: string | null,
  items: readonly HistoryItem[],
  unsealer: Unsealer,
  isNative = false,
): PromptMessages {
  const builder = new MessageBuilder(unsealer, isNative)
  if (instructions !== null && instructions !== '') builder.add({ role: 'system', content: instructions })
  for (const item of items) builder.addItem(item)
  return builder.end()
}

class MessageBuilder {
  readonly #messages: ChatMessage[] = []
  readonly #origins = new Map<string, CalledTool>()
  readonly #unsealer: Unsealer
  readonly #isNative: boolean
  /** Ids of calls so far: some engines number calls from 0 in each turn. */
  readonly #usedIds = new Set<string>()
  #turn: AssistantTurn | null = null
  #droppedReasoning = 0
  readonly #calls = new GatewayCalls()

  constructor(unsealer: Unsealer, isNative: boolean) {
    this.#unsealer = unsealer
    this.#isNative = isNative
  }

  add(message: ChatMessage): void {
    this.#endTurn()
    this.#messages.push(message)
  }

  addItem(item: HistoryItem): void {
    const call = this.#calls.read(item)
    if (call !== null) this.#addRun(call)
    switch (item.type) {
      case 'message':
        this.#addMessage(item)
        return
      case 'reasoning':
        this.#addReasoning(item)
        return
      case 'function_call':
        this.#assistant().addCall(
          String(item.call_id),
          functionName(item),
          String(item.arguments),
          item.extra_content,
        )
        return
      case 'custom_tool_call':
        this.#assistant().addCall(String(item.call_id), functionName(item), customArguments(item.input))
        return
      case 'custom_tool_call_output':
      case 'function_call_output':
        this.#addOutput(item, item.output)
        return
      case 'image_generation_call':
        this.#assistant().addText('[An image.]')
        return
      // Those without a call id were run by the service that the turn came from.
      case 'tool_search_call':
        if (typeof item.call_id === 'string')
          this.#assistant().addCall(item.call_id, SEARCH_TOOL, JSON.stringify(item.arguments ?? {}))
        return
      case SEARCH_OUTPUT:
        if (typeof item.call_id === 'string')
          this.#addOutput(item, JSON.stringify({ tools: namesFound(item) }))
        return
      case 'compaction': {
        const summary = findSummary(item, this.#unsealer)
        if (this.#isNative && isForeignSummary(item, this.#unsealer)) return
        this.add({ role: 'user', content: summaryMessage(requireOpened(summary)) })
        return
      }
    }
  }

  end(): PromptMessages {
    this.#endTurn()
    return {
      messages: withoutOldReasoning(this.#messages),
      origins: this.#origins,
      droppedReasoning: this.#droppedReasoning,
    }
  }

  #addMessage(item: HistoryItem): void {
    const content = item.content as readonly Part[]
    if (item.role === 'assistant') {
      const text = textOf(content)
      if (text !== '') this.#assistant().addText(text)
      this.#addExtraContent(item)
      return
    }
    const role = item.role === 'user' ? 'user' : 'system'
    this.add({ role, content: toChatContent(content) })
  }

  /** Drops reasoning that cannot be decrypted: a lost key must not end the conversation. */
  #addReasoning(item: HistoryItem): void {
    const reasoning = this.#reasoningOf(item)
    if (reasoning === null) this.#droppedReasoning += 1
    else this.#assistant().addReasoning(reasoning)
    this.#addExtraContent(item)
  }

  /** A message without text belongs to the calls in front of it, whose results may be known already. */
  #addExtraContent({ extra_content: data }: HistoryItem): void {
    if (data != null) (this.#turn ?? this.#assistant()).addExtraContent(data)
  }

  #reasoningOf(item: HistoryItem): SealedText | null {
    if (typeof item.encrypted_content === 'string') return this.#unsealer.open(item.encrypted_content)
    const parts = (item.content ?? item.summary ?? []) as readonly Part[]
    return { text: textOf(parts) }
  }

  /** Turn to which the next item of the assistant belongs. */
  #assistant(): AssistantTurn {
    if (this.#turn?.isAnswered) this.#endTurn()
    this.#turn ??= new AssistantTurn(this.#usedIds)
    return this.#turn
  }

  #addOutput(item: HistoryItem, output: unknown): void {
    const callId = String(item.call_id)
    const isAdded =
      this.#turn?.addResult(
        callId,
        typeof output === 'string' ? output : textOf(output as readonly Part[]),
        typeof output === 'string' ? [] : picturesOf(output as readonly Part[]),
      ) ?? false
    if (!isAdded) throw responsesErrors.orphan_tool_output.with({ param: 'input' }, callId)
  }

  #addRun({ id: itemId, origin, name, arguments: args, result }: GatewayCall): void {
    const id = this.#assistant().addCall(itemId, name, args)
    this.#origins.set(id, origin)
    this.#turn?.addResult(itemId, result, [])
  }

  #endTurn(): void {
    const turn = this.#turn
    this.#turn = null
    if (turn === null) return
    const unanswered = turn.unanswered()
    if (unanswered !== null) throw responsesErrors.missing_tool_output.with({ param: 'input' }, unanswered)
    turn.writeTo(this.#messages)
  }
}

function functionName({ name, namespace }: HistoryItem): string {
  return typeof namespace === 'string' ? memberName(namespace, String(name)) : String(name)
}

function picturesOf(parts: readonly Part[]): readonly ContentPart[] {
  const content = toChatContent(parts.filter(({ type }) => type !== 'input_text' && type !== 'output_text'))
  if (typeof content === 'string') return []
  return content.map((part) =>
    part.type === 'image_url' ? { ...part, unseen: imageNote(part.image_url.url) } : part,
  )
}

/**
 * Reasoning of earlier turns is sent only with the calls that it led to: some models require it there, and the templates of
 * all others drop it themselves.
 */
function withoutOldReasoning(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  return messages.map((message, index) => {
    if (index >= lastUser || message.reasoning_content === undefined || message.tool_calls !== undefined)
      return message
    const { reasoning_content: _, reasoning_signature: __, ...rest } = message
    return rest
  })
}
