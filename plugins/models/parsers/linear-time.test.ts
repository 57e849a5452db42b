import { expect, test } from 'vitest'
import { examples } from '../../../test/support/parsers/examples.ts'
import { reasoned, streamed } from '../../../test/support/parsers/parse-in-chunks.ts'
import { attribute } from './calls/tag-attributes.ts'
import { toolFormats } from './formats/format-table.ts'
import { reasoningFormats } from './reasoning/reasoning-table.ts'

const names = toolFormats.map(({ name }) => name)
const MARKS = /<[^<>]{1,40}>|\[[A-Z_]+\]|\]<\]minimax\[>\[/gu
const SIZE = 100_000

/** Starts that never end, and texts that invite a rescan. */
function attacks(name: string): string[] {
  const own = examples
    .filter(({ format }) => format === name)
    .flatMap(({ input }) => input.match(MARKS) ?? [])
  const inputs = examples.filter(({ format }) => format === name).map(({ input }) => input)
  const halves = inputs.map((input) => input.slice(0, Math.ceil(input.length * 0.7)))
  return [
    ...new Set([
      ...'<[{"\\◁(',
      '<|',
      '[{',
      '{"name":',
      '[f(',
      '[f(a=',
      '{"name":"a","arguments":{',
      ...own,
      ...halves,
    ]),
  ]
}

function timeOf(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const chunksOf = (text: string, size: number) => {
  const chunks: string[] = []
  for (let at = 0; at < text.length; at += size) chunks.push(text.slice(at, at + size))
  return chunks
}

test.each(names)(
  '%s takes linear time for adversarial texts',
  (name) => {
    for (const attack of attacks(name)) {
      const text = attack.repeat(Math.ceil(SIZE / attack.length))
      // Usually some tens of milliseconds; a rescan at each character would take far longer.
      expect(
        timeOf(() => streamed(name, [text])),
        `${attack} at once`,
      ).toBeLessThan(3_000)
      expect(
        timeOf(() => streamed(name, chunksOf(text, 7))),
        `${attack} in pieces`,
      ).toBeLessThan(4_000)
    }
  },
  300_000,
)

test.each(reasoningFormats.map(({ name }) => name))(
  'reasoning of %s takes linear time',
  (name) => {
    for (const attack of [
      '<',
      '<think',
      '<think>',
      '◁think',
      '<|open|>',
      '<|open|>think',
      '<|content_thinking|>',
      '[THINK',
    ]) {
      const text = attack.repeat(Math.ceil(SIZE / attack.length))
      expect(
        timeOf(() => reasoned(name, [text])),
        attack,
      ).toBeLessThan(3_000)
      expect(
        timeOf(() => reasoned(name, chunksOf(text, 7))),
        attack,
      ).toBeLessThan(4_000)
    }
  },
  300_000,
)

test('one call with 8 MB of arguments in ten chunks is read', () => {
  const value = 'x'.repeat(8_000_000)
  const start = '<tool_call>{"name":"f","arguments":{"a":"'
  const { calls } = streamed('qwen', [start, ...chunksOf(value, 10), '"}}</tool_call>'])
  expect(calls[0][1].length).toBe(value.length + '{"a":""}'.length)
})

test.each([
  ['qwen_xml', `<tool_call><function=f><parameter=a>${'0'.repeat(SIZE)}x</parameter></function></tool_call>`],
  [
    'qwen_xml',
    `<tool_call><function=f><parameter=a>${'0'.repeat(SIZE)}.0x</parameter></function></tool_call>`,
  ],
  ['glm47_moe', `<tool_call>f<arg_key>a</arg_key><arg_value>${'0'.repeat(SIZE)}x</arg_value></tool_call>`],
  [
    'minimax_m2',
    `<minimax:tool_call><invoke name="f"><parameter name="a">${'0'.repeat(SIZE)}x</parameter></invoke></minimax:tool_call>`,
  ],
])('%s takes linear time for a value that looks like a number up to its last character', (name, text) => {
  expect(timeOf(() => streamed(name, [text]))).toBeLessThan(3_000)
})

test('attributes of a tag take linear time', () => {
  expect(timeOf(() => attribute('-'.repeat(SIZE), 'name'))).toBeLessThan(3_000)
})

test('ten thousand parameters are read', () => {
  const pairs = Array.from(
    { length: 10_000 },
    (_, index) => `<parameter=p${index}>${index}</parameter>`,
  ).join('')
  const [[, written]] = streamed(
    'qwen_xml',
    chunksOf(`<tool_call><function=f>${pairs}</function></tool_call>`, 5),
  ).calls
  expect(Object.keys(JSON.parse(written))).toHaveLength(10_000)
})
