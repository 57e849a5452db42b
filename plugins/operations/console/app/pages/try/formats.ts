/** The client formats of the page: their requests, and what the events of their streams contain. */
export interface Prompt {
  readonly model: string
  readonly system: string
  readonly text: string
  readonly maxTokens: number
  readonly isStreamed: boolean
}

/** What an event adds to the answer. */
export interface Delta {
  readonly text?: string
  readonly reasoning?: string
  readonly usage?: { readonly input: number; readonly output: number }
  readonly error?: string
}

export interface Format {
  /** Name of the plugin with its route. */
  readonly name: string
  readonly title: string
  readonly path: string
  body(prompt: Prompt): Record<string, unknown>
  /** @param event JSON of an event, or the whole body of a response that is not streamed */
  read(event: Json): Delta
}

/** JSON of the gateway or a worker; every member is checked where it is used. */
export type Json = { readonly [name: string]: Json | undefined } & readonly Json[] & unknown

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')
const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value : [])

function usageOf(usage: Json | undefined, input: string, output: string): Delta['usage'] {
  if (usage == null || typeof usage !== 'object') return undefined
  return { input: Number(usage[input] ?? 0), output: Number(usage[output] ?? 0) }
}

const chat: Format = {
  name: 'chat',
  title: 'Chat',
  path: '/v1/chat/completions',
  body: ({ model, system, text, maxTokens, isStreamed }) => ({
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content: text },
    ],
    max_tokens: maxTokens,
    ...(isStreamed && { stream: true, stream_options: { include_usage: true } }),
  }),
  read({ choices, usage, error }) {
    const [choice] = listOf(choices)
    const part = choice?.delta ?? choice?.message
    return {
      text: textOf(part?.content),
      reasoning: textOf(part?.reasoning_content),
      usage: usageOf(usage, 'prompt_tokens', 'completion_tokens'),
      error: textOf(error?.message),
    }
  },
}

const responses: Format = {
  name: 'responses',
  title: 'Responses',
  path: '/v1/responses',
  body: ({ model, system, text, maxTokens, isStreamed }) => ({
    model,
    ...(system !== '' && { instructions: system }),
    input: text,
    max_output_tokens: maxTokens,
    store: false,
    ...(isStreamed && { stream: true }),
  }),
  read(event) {
    const type = textOf(event.type)
    const delta = textOf(event.delta)
    const whole = event.response ?? event
    const items = type === '' ? listOf(whole.output) : []
    return {
      text:
        type === 'response.output_text.delta'
          ? delta
          : items.flatMap(({ content }) => listOf(content).map(({ text }) => textOf(text))).join(''),
      reasoning: type.startsWith('response.reasoning') ? delta : '',
      usage: usageOf(whole.usage, 'input_tokens', 'output_tokens'),
      error: textOf(whole.error?.message ?? (type === 'error' ? event.message : undefined)),
    }
  },
}

const messages: Format = {
  name: 'messages',
  title: 'Messages',
  path: '/v1/messages',
  body: ({ model, system, text, maxTokens, isStreamed }) => ({
    model,
    max_tokens: maxTokens,
    ...(system !== '' && { system }),
    messages: [{ role: 'user', content: text }],
    ...(isStreamed && { stream: true }),
  }),
  read({ delta, content, usage, error }) {
    return {
      text:
        textOf(delta?.text) +
        listOf(content)
          .map(({ text }) => textOf(text))
          .join(''),
      reasoning: textOf(delta?.thinking),
      usage: usageOf(usage, 'input_tokens', 'output_tokens'),
      error: textOf(error?.message),
    }
  },
}

export const formats: readonly Format[] = [chat, responses, messages]
