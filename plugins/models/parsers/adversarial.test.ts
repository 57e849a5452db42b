/** Invalid and nearly valid tool calls, in every format and for any split of the text. */
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { examples } from '../../../test/support/parsers/examples.ts'
import { reasoned, streamed, whole } from '../../../test/support/parsers/parse-in-chunks.ts'
import { toolFormats } from './formats/format-table.ts'
import { reasoningFormats } from './reasoning/reasoning-table.ts'

const marks = [
  ...new Set(
    examples.flatMap(({ input }) => input.match(/<[^<>\s]{1,40}>|\[[A-Z_]+\]|\]<\]minimax\[>\[/gu) ?? []),
  ),
]
const ODD_NAMES = ['', ' ', 'n'.repeat(300), 'a"b', 'a>b', 'a:b', 'a/b', 'a-b', 'a.b', '😀']
const ODD_NUMBERS = ['-0', '1e400', '0.1e-7', 'NaN', 'inf', '0x10', '1_000', '007']
const ODD_STRINGS = ['\\\\', '\\"', '\\u0000', '\\ud83d', '\n', '\\ud83d\\ude00']
const nest = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

const corpus: readonly string[] = [
  // Marks that are incomplete, repeated, or closed without an opening mark.
  ...marks.flatMap((mark) => [mark.slice(0, -1), mark + mark, `${mark}x`]),
  // Marks inside JSON strings.
  ...['</tool_call>', '<tool_call>', '[TOOL_CALLS]', '<|tool_call_end|>', '<|END_ACTION|>', ']'].map(
    (mark) => `<tool_call>\n{"name":"f","arguments":{"t":"${mark}"}}\n</tool_call>`,
  ),
  '</think>a<think>',
  '<tool_call><function=f><parameter=t><think>x</think></parameter></function></tool_call>',
  '<think><tool_call>{"name":"f"}</tool_call></think>',
  '<tool_call>\n{"name":"f","arguments":{"c":"<tool_call>\\n{\\"name\\":\\"g\\"}\\n</tool_call>"}}\n</tool_call>',
  '[f(a=[g(b=1)])]',
  ...ODD_NAMES.flatMap((name) => [
    `<tool_call>{"name":"${name}","arguments":{}}</tool_call>`,
    `<tool_call><function=${name}></function></tool_call>`,
  ]),
  '<tool_call>{"name":"f","arguments":{"":1,"__proto__":2,"constructor":3,"10":4,"10":5}}</tool_call>',
  ...[...ODD_NUMBERS, ...ODD_STRINGS.map((text) => `"${text}"`)].flatMap((value) => [
    `[{"name":"f","arguments":{"a":${value}}}]`,
    `<tool_call>f\n<arg_key>a</arg_key><arg_value>${value}</arg_value></tool_call>`,
    `[f(a=${value})]`,
  ]),
  ...[40, 127, 200].map((depth) => `{"name":"f","arguments":{"a":${nest(depth)}}}`),
  ...["'''x'''", '[)]', "'['", '1,', 'b.c', '**x', 'lambda: 0', '(1', "b'x'", "f'{x}'"].map(
    (value) => `[f(a=${value})]`,
  ),
  "<tool_call><function='f'><parameter = a>1</parameter></function></tool_call>",
  '<minimax:tool_call><invoke  name=\'f\' id="1"><!-- x --><parameter name="a"><![CDATA[<b>]]></parameter></invoke></minimax:tool_call>',
  '<tool_call>\r\n{"name":"f","arguments":{}}\r\n</tool_call>',
  '<tool_call>f\r\n<arg_key>a</arg_key>\r\n<arg_value>1</arg_value>\r\n</tool_call>',
  '\ufeff<tool_call>\u00a0{"name":"f"}\u200d</tool_call>',
  '<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|><steptml:invoke name="f"></steptml:invoke>',
  '<｜tool_calls_begin｜><｜tool▁call▁begin｜>function<｜tool_sep｜>f',
  '[TOOL_CALLS] <tool_call>{"name":"f"}</tool_call>',
  '<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜end▁of▁sentence｜>',
]

/** As `toEqual`, which takes most of the time when it runs for every split. */
function expectEqual(actual: unknown, expected: unknown, text: string): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual, text).toEqual(expected)
}

test.each(toolFormats.map(({ name }) => name))(
  'the result of %s does not depend on the split of the text',
  (name) => {
    for (const text of corpus) {
      whole(name, text)
      const direct = streamed(name, [text], { dropsTrailing: false })
      expectEqual(streamed(name, text.split(''), { dropsTrailing: false }), direct, text)
      for (let at = 1; at < text.length; at++) {
        const halves = [text.slice(0, at), text.slice(at)]
        expectEqual(streamed(name, halves, { dropsTrailing: false }), direct, text)
      }
    }
  },
)

test.each(reasoningFormats.map(({ name }) => name))(
  'reasoning of %s does not depend on the split of the text',
  (name) => {
    for (const text of corpus) {
      const direct = reasoned(name, [text])
      for (let at = 1; at < text.length; at++)
        expectEqual(reasoned(name, [text.slice(0, at), text.slice(at)]), direct, text)
    }
  },
)

/** Examples with calls. */
const withCalls = examples.filter(({ calls }) => calls.length > 0)

test.each(withCalls)('$format, $input truncated at any place', ({ format, input, tools }) => {
  for (let end = 0; end < input.length; end++) {
    const text = input.slice(0, end)
    const direct = streamed(format, [text], { tools })
    expectEqual(streamed(format, [...text], { tools }), direct, text)
    const { text: rest, calls } = whole(format, text, { tools })
    for (const [, written] of calls) JSON.parse(written)
    // Formats with markup frames do not return the frames as text.
    if (calls.length === 0 && !['inkling', 'kimi_k3', 'cohere', 'sarashina'].includes(format))
      expect(rest).toBe(text)
  }
})

test('ten thousand calls in one array are read, and the default limit applies', () => {
  const calls = JSON.stringify(Array.from({ length: 10_000 }, (_, at) => ({ name: 'f', arguments: { at } })))
  const limits = { maxCalls: 10_000, maxArgumentChars: 1_000 }
  expect(streamed('json', [calls], { limits }).calls).toHaveLength(10_000)
  const { text, calls: few } = streamed('json', [calls], { dropsTrailing: false })
  expect(few).toHaveLength(128)
  expect(text.length).toBeGreaterThan(100_000)
})
