import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cut, streamed } from './fixtures/stream-parts.ts'

interface Call {
  readonly name: string
  readonly args: Record<string, fc.JsonValue>
}

const calls = fc.array(
  fc.record({
    name: fc.stringMatching(/^[A-Za-z0-9_]{1,20}$/),
    args: fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 6 }), {
      noNullPrototype: true,
    }),
  }),
  { minLength: 1, maxLength: 4 },
)

const text = (value: unknown) => JSON.stringify(value)
const block = (open: string, close: string) => (written: string[]) => open + written.join('') + close
const kimiCall = ({ name, args }: Call) =>
  `<|tool_call_begin|>functions.${name}:0<|tool_call_argument_begin|>${text(args)}<|tool_call_end|>`
const deepseekCall = ({ name, args }: Call) =>
  `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${text(args)}<｜tool▁call▁end｜>`

const writers: Record<string, (calls: readonly Call[]) => string> = {
  json: (calls) => text(calls.map(({ name, args }) => ({ name, arguments: args }))),
  mistral: (calls) => `[TOOL_CALLS] ${text(calls.map(({ name, args }) => ({ name, arguments: args })))}`,
  mistral_v13: (calls) => calls.map(({ name, args }) => `[TOOL_CALLS]${name}[ARGS]${text(args)}`).join(''),
  qwen: (calls) =>
    calls.map(({ name, args }) => `<tool_call>\n${text({ name, arguments: args })}\n</tool_call>`).join('\n'),
  llama: (calls) =>
    `<|python_tag|>${calls.map(({ name, args }) => text({ name, parameters: args })).join('; ')}`,
  cohere: (calls) =>
    `<|START_ACTION|>${text(calls.map(({ name, args }) => ({ tool_name: name, parameters: args })))}<|END_ACTION|>`,
  kimik2: (calls) => block('<|tool_calls_section_begin|>', '<|tool_calls_section_end|>')(calls.map(kimiCall)),
  deepseek31: (calls) => block('<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>')(calls.map(deepseekCall)),
  inkling: (calls) =>
    calls
      .map(({ name, args }) => `<|content_invoke_tool_json|>${text({ name, args })}<|end_message|>`)
      .join(''),
}

test.each(Object.keys(writers))('parsers 6.1 I10, I13: what is written as %s is read again', (name) => {
  fc.assert(
    fc.property(calls, fc.array(fc.nat(), { maxLength: 6 }), (given, places) => {
      const { calls: read, isWhole } = streamed(name, cut(writers[name](given), places))
      expect(read).toEqual(given.map((call) => [call.name, text(call.args)]))
      expect(isWhole).toBe(true)
    }),
    { numRuns: 500 },
  )
})
