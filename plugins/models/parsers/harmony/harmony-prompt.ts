/** Writes a chat as Harmony messages, which no template does as exactly. */
import type { ChatMessage, ChatTool, PromptPiece, WrittenChat } from '#kernel'
import { parsersErrors } from '../errors.ts'
import { CALL, CHANNEL, CONSTRAIN, END, MESSAGE, START } from './harmony-format.ts'
import { toolNamespace } from './tool-namespace.ts'

const IDENTITY = 'You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06'
const CALLS_GO = "Calls to these tools must go to the commentary channel: 'functions'."
const EFFORTS: ReadonlyMap<string, string> = new Map([
  ['none', 'low'],
  ['minimal', 'low'],
  ['low', 'low'],
  ['high', 'high'],
])

/** One message. */
interface Message {
  readonly author: string
  readonly recipient?: string
  readonly channel?: string
  /** The content is the JSON of a call. */
  readonly isCall?: boolean
  readonly content: string
}

/** @throws harmony_build_failed (400) */
export function harmonyPrompt(chat: WrittenChat, now: Date): PromptPiece[] {
  const { messages, continuesLastMessage } = chat
  const last = messages.at(-1)
  if (continuesLastMessage && (last?.role !== 'assistant' || (last.tool_calls ?? []).length > 0))
    throw parsersErrors.harmony_build_failed('continue_final_message needs an assistant message with text')
  const pieces = new Pieces()
  for (const message of [...openingMessages(chat, now), ...history(messages, continuesLastMessage)])
    pieces.message(message)
  if (continuesLastMessage)
    pieces.open({ author: 'assistant', channel: 'final', content: last === undefined ? '' : textOf(last) })
  else pieces.begin('assistant')
  return pieces.list
}

/** The system message, and the developer message with instructions and tools. */
function openingMessages({ messages, tools, effort }: WrittenChat, now: Date): Message[] {
  const namespace = toolNamespace(tools)
  const said = messages.slice(0, leadingInstructions(messages)).map(textOf)
  const instructions = said.filter((text) => text !== '').join('\n\n')
  const sections = [instructions === '' ? '' : `# Instructions\n\n${instructions}`, namespace]
  const developer = sections.filter((section) => section !== '').join('\n\n')
  const system = systemText(tools, effort, now)
  return [
    { author: 'system', content: system },
    ...(developer === '' ? [] : [{ author: 'developer', content: developer }]),
  ]
}

function systemText(tools: readonly ChatTool[], effort: string | null, now: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`
  const channels = tools.length > 0 ? 'analysis, commentary, final' : 'analysis, final'
  const sections = [
    `${IDENTITY}\nCurrent date: ${date}`,
    `Reasoning: ${EFFORTS.get(effort ?? '') ?? 'medium'}`,
    `# Valid channels: ${channels}. Channel must be included for every message.`,
  ]
  return sections.join('\n\n') + (tools.length > 0 ? `\n${CALLS_GO}` : '')
}

function leadingInstructions(messages: readonly ChatMessage[]): number {
  const place = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  return place < 0 ? messages.length : place
}

/** Reasoning is kept only while the turn has no answer. */
function history(messages: readonly ChatMessage[], isLastOpen: boolean): Message[] {
  const names = new Map<string, string>()
  const first = leadingInstructions(messages)
  const closed = isLastOpen ? messages.length - 1 : messages.length
  const lastAnswer = messages.findLastIndex(
    (message, place) => place < closed && message.role === 'assistant' && !hasCalls(message),
  )
  return messages.slice(first).flatMap((message, offset): readonly Message[] => {
    const place = first + offset
    for (const { id, function: called } of message.tool_calls ?? []) names.set(id, called.name)
    switch (message.role) {
      case 'system':
      case 'developer':
        return [{ author: 'developer', content: `# Instructions\n\n${textOf(message)}` }]
      case 'user':
        return [{ author: 'user', content: textOf(message) }]
      case 'tool':
        return [toolResult(message, names)]
      default: {
        const thought = place > lastAnswer ? thoughtOf(message) : []
        return place < closed ? [...thought, ...assistantTurn(message)] : thought
      }
    }
  })
}

function hasCalls({ tool_calls: calls }: ChatMessage): boolean {
  return calls !== undefined && calls.length > 0
}

function thoughtOf({ reasoning_content: thought }: ChatMessage): Message[] {
  return thought ? [{ author: 'assistant', channel: 'analysis', content: thought }] : []
}

function assistantTurn(message: ChatMessage): Message[] {
  const content = textOf(message) || (message.refusal ?? '')
  if (!hasCalls(message)) return [{ author: 'assistant', channel: 'final', content }]
  const calls = (message.tool_calls ?? []).map(({ function: { name, arguments: given } }) => ({
    author: 'assistant',
    recipient: `functions.${name}`,
    channel: 'commentary',
    isCall: true,
    content: given === '' ? '{}' : given,
  }))
  // Words to the user before the calls.
  return content === '' ? calls : [{ author: 'assistant', channel: 'commentary', content }, ...calls]
}

function toolResult(message: ChatMessage, names: ReadonlyMap<string, string>): Message {
  const { tool_call_id: id = '', name, is_error: isError } = message
  const author = `functions.${names.get(id) ?? name ?? id}`
  const content = isError === true ? `Error: ${textOf(message)}` : textOf(message)
  return { author, recipient: 'assistant', channel: 'commentary', content }
}

/** Joins text parts with line breaks; other parts are dropped. @throws harmony_build_failed (400) for audio */
function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string' || content === null) return content ?? ''
  if (content.some(({ type }) => type === 'input_audio'))
    throw parsersErrors.harmony_build_failed('such models take no audio')
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** Control tokens apart from text, so that nothing in a text can become one. */
class Pieces {
  readonly list: PromptPiece[] = []

  message(message: Message): void {
    this.open(message)
    this.#token(message.isCall === true ? CALL : END)
  }

  /** A message without its end. */
  open({ author, recipient, channel, isCall, content }: Message): void {
    this.begin(recipient === undefined ? author : `${author} to=${recipient}`)
    if (channel !== undefined) {
      this.#token(CHANNEL)
      this.#text(isCall === true ? `${channel} ` : channel)
    }
    if (isCall === true) {
      this.#token(CONSTRAIN)
      this.#text('json')
    }
    this.#token(MESSAGE)
    this.#text(content)
  }

  begin(header: string): void {
    this.#token(START)
    this.#text(header)
  }

  #token(text: string): void {
    this.list.push({ isToken: true, text })
  }

  #text(text: string): void {
    if (text !== '') this.list.push({ isToken: false, text })
  }
}
