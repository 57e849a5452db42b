/** Converts prompts and messages to text and a token count. */
import { countTokens } from './tokens.ts'
import type { ChatMessage, Prompt } from './wire.ts'

export interface PromptText {
  readonly text: string
  readonly tokens: number
  /** What the tokens are made of, in order. */
  readonly segments: readonly PromptSegment[]
}

/** A message, a text, or token ids. */
interface PromptSegment {
  /** Tells messages of the same text apart; costs no token. */
  readonly role: string
  readonly content: string | readonly number[]
}

/** One entry per prompt. Token ids count one token each; as text they are their numbers. */
export function promptsOf(prompt: Prompt): PromptText[] {
  if (typeof prompt === 'string') return [textPrompt(prompt)]
  if (prompt.length === 0) return []
  if (typeof prompt[0] === 'number') return [idsPrompt(prompt as number[])]
  return (prompt as (string | number[])[]).map((one) =>
    typeof one === 'string' ? textPrompt(one) : idsPrompt(one),
  )
}

/** All messages as one prompt. Only text and tool calls count; roles and framing are free. */
export function chatPrompt(messages: readonly ChatMessage[]): PromptText {
  let text = ''
  let tokens = 0
  const segments: PromptSegment[] = []
  for (const message of messages) {
    const said = messageText(message)
    text += `${message.role}\n${said}\n`
    tokens += countTokens(said)
    segments.push({ role: message.role, content: said })
  }
  return { text, tokens, segments }
}

/** The text of one message: its text parts, and the calls that it makes. */
export function messageText(message: ChatMessage): string {
  const { content } = message
  let text = ''
  if (typeof content === 'string') text = content
  else for (const part of content ?? []) text += part.text ?? ''
  for (const call of message.tool_calls ?? []) text += `${call.function.name}${call.function.arguments}`
  return text
}

function textPrompt(text: string): PromptText {
  return { text, tokens: countTokens(text), segments: [{ role: '', content: text }] }
}

function idsPrompt(ids: readonly number[]): PromptText {
  return { text: ids.join(' '), tokens: ids.length, segments: [{ role: '', content: ids }] }
}

export function tokensOf(prompts: readonly PromptText[]): number {
  return prompts.reduce((sum, prompt) => sum + prompt.tokens, 0)
}
