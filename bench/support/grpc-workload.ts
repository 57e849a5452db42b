/** The answers that grpc-sse measures: what the engine says in tokens, and what the client must have received. */

/** Prose, as most answers are. */
const PROSE =
  'The gateway reads each token as it comes, keeps what may still become something else, and sends the rest on. ' +
  'A stream that waits for nobody costs little; one that is read, told anew and counted costs more, and this is by how much. ' +
  'Numbers such as 3.14 and 2,718, a list (first, second, third) and “quotes” are part of it, as is a line\nbreak.\n\n' +
  'Whoever asks for a thousand words gets them one by one, in the order in which they were written, and no word twice. ' +
  'The engine does not know who listens, and the client does not know who speaks.'

const THOUGHTS =
  'The user wants to know how warm it is in two towns. There is a tool for that; it takes the name of a town and a unit. ' +
  'I should call it once for each of them, and say in a sentence what I am about to do.'
const SAID = 'I will look up the weather of both towns for you, it takes a moment.'
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

/** `parsed` has reasoning, text and tool calls; `long` is so long that what a request costs hardly counts. */
export type AnswerKind = 'plain' | 'long' | 'parsed'

/** As the load client takes them: their places, from 1 on. */
export const ANSWER_KINDS: readonly AnswerKind[] = ['plain', 'parsed', 'long']
const LONG = PROSE.repeat(4)

/** What the model writes. */
export function answerText(kind: AnswerKind): string {
  if (kind !== 'parsed') return kind === 'plain' ? PROSE : LONG
  const calls = CALLS.map((call) => `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`)
  return `<think>\n${THOUGHTS}\n</think>\n\n${SAID}\n${calls.join('\n')}`
}

interface Delta {
  readonly content?: string | null
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly {
    readonly index: number
    readonly function?: { readonly name?: string | null; readonly arguments?: string | null }
  }[]
}

/** Whether a chat stream says what the model wrote. */
export function isSameAnswer(kind: AnswerKind, stream: Buffer): boolean {
  const blocks = stream.toString('utf8').split('\n\n').slice(0, -1)
  // On a busy machine a stream may be silent for so long that it is kept awake.
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
    content.trim() === SAID &&
    reasoning.trim() === THOUGHTS &&
    JSON.stringify(calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) }))) ===
      JSON.stringify(CALLS)
  )
}
