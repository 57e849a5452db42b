/** The model outputs of the gRPC scenarios and the check of what the client received. */

const PROSE =
  'The gateway decodes each token, holds back text that may be the start of a marker, and sends the rest to the client. ' +
  'A relayed stream costs little; a stream that is decoded, converted and counted costs more, and this measures the difference. ' +
  'Numbers such as 3.14 and 2,718, a list (first, second, third) and “quotes” are part of it, as is a line\nbreak.\n\n' +
  'A client that requests a thousand words receives them one by one, in the order of generation, and no word twice. ' +
  'The engine is independent of the client, and the client is independent of the engine.'

const THOUGHTS =
  'The user wants to know how warm it is in two towns. There is a tool for that; it takes the name of a town and a unit. ' +
  'I should call it once for each of them, and say in a sentence what I am about to do.'
const TEXT = 'I will look up the weather of both towns for you, it takes a moment.'
const CALLS = ['Reykjavík', 'Buenos Aires'].map((city) => ({
  name: 'get_weather',
  arguments: { city, unit: 'celsius', days: 3 },
}))

export const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather of a town.',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' }, unit: { type: 'string' }, days: { type: 'integer' } },
        required: ['city'],
      },
    },
  },
]

/** `parsed` has reasoning, text and tool calls; in `long` the cost of the request itself is negligible. */
export type AnswerKind = 'plain' | 'long' | 'parsed'

/** The load client takes the index in this list plus 1. */
export const ANSWER_KINDS: readonly AnswerKind[] = ['plain', 'parsed', 'long']
const LONG = PROSE.repeat(4)

/** Output of the model. */
export function answerText(kind: AnswerKind): string {
  if (kind !== 'parsed') return kind === 'plain' ? PROSE : LONG
  const calls = CALLS.map((call) => `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`)
  return `<think>\n${THOUGHTS}\n</think>\n\n${TEXT}\n${calls.join('\n')}`
}

interface Delta {
  readonly content?: string | null
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly {
    readonly index: number
    readonly function?: { readonly name?: string | null; readonly arguments?: string | null }
  }[]
}

/** Whether a chat stream has the output of the model. */
export function isSameAnswer(kind: AnswerKind, stream: Buffer): boolean {
  const blocks = stream.toString('utf8').split('\n\n').slice(0, -1)
  // On a busy machine a stream may contain heartbeat comments.
  const events = blocks.filter((block) => !block.startsWith(':'))
  if (events.pop() !== 'data: [DONE]') return false
  let content = ''
  let reasoning = ''
  const calls: { name: string; arguments: string }[] = []
  for (const event of events) {
    const { choices } = JSON.parse(event.slice('data: '.length)) as { choices: readonly { delta: Delta }[] }
    for (const { delta } of choices) {
      content += delta.content ?? ''
      reasoning += delta.reasoning_content ?? ''
      for (const { index, function: called } of delta.tool_calls ?? []) {
        calls[index] ??= { name: '', arguments: '' }
        calls[index].name += called?.name ?? ''
        calls[index].arguments += called?.arguments ?? ''
      }
    }
  }
  if (kind !== 'parsed') return content === answerText(kind) && reasoning === '' && calls.length === 0
  return (
    content.trim() === TEXT &&
    reasoning.trim() === THOUGHTS &&
    JSON.stringify(calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) }))) ===
      JSON.stringify(CALLS)
  )
}
