import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OutputCollector, parseWhole } from '../../../../test/support/parsers/output-collector.ts'
import { cut } from '../../../../test/support/parsers/parse-in-chunks.ts'
import { OutputParsersOf } from '../output-parsers.ts'

const parsers = new OutputParsersOf({
  toolParser: null,
  reasoningParser: null,
  limits: { maxCalls: 128, maxArgumentChars: 1_000_000 },
  onChoice: () => {},
  onTemplate: () => {},
  onUnknown: () => {},
})
const parser = parsers.parserFor({ model: 'openai/gpt-oss-20b', toolChoice: { mode: 'auto' } })

function read(chunks: readonly string[]) {
  const collector = new OutputCollector()
  const stream = parser.open(collector)
  for (const chunk of chunks) stream.push(chunk)
  stream.end()
  const { reasoning, text, toolCalls } = collector.output()
  return { reasoning, text, calls: toolCalls.map((call) => [call.name, call.arguments]) }
}

const S = '<|start|>assistant'
const cases: [input: string, expected: ReturnType<typeof read>][] = [
  [
    `<|channel|>analysis<|message|>Sum is 9.<|end|>${S}<|channel|>final<|message|>Nine.<|return|>`,
    { reasoning: 'Sum is 9.', text: 'Nine.', calls: [] },
  ],
  [
    `<|channel|>analysis<|message|>Dim it.<|end|>${S}<|channel|>commentary to=functions.dim <|constrain|>json<|message|>{"level":3}<|call|>`,
    { reasoning: 'Dim it.', text: '', calls: [['dim', '{"level":3}']] },
  ],
  [
    ' to=functions.ping<|channel|>commentary json<|message|>{}<|call|>',
    { reasoning: '', text: '', calls: [['ping', '{}']] },
  ],
  ...[
    ' to=functions.f<|channel|>commentary<|constrain|>json<|message|>',
    ' to=functions.f<|channel|>commentary <|constrain|>json<|message|>',
    '<|channel|>commentary to=functions.f<|constrain|>json<|message|>',
    '<|channel|>commentary to=functions.f <|constrain|>json<|message|>',
    '<|channel|>commentary to=functions.f json<|message|>',
    '<|channel|>commentary to=functions.f<|message|>',
  ].map((head): [string, ReturnType<typeof read>] => [
    `${head}{"a": 1}<|call|>`,
    { reasoning: '', text: '', calls: [['f', '{"a": 1}']] },
  ]),
  [
    '<|channel|>analysis to=functions.f<|message|>{}<|call|>',
    { reasoning: '', text: '', calls: [['f', '{}']] },
  ],
  [
    `<|channel|>commentary<|message|>I will dim.<|end|>${S}<|channel|>commentary to=functions.dim<|constrain|>json<|message|>{}<|call|>`,
    { reasoning: '', text: 'I will dim.', calls: [['dim', '{}']] },
  ],
  [
    '<|channel|>analysis to=browser.search code<|message|>{"query":"x"}<|call|>',
    { reasoning: '{"query":"x"}', text: '', calls: [] },
  ],
  [
    '<|channel|>final<|constrain|>json<|message|>{"ok":true}<|return|>',
    { reasoning: '', text: '{"ok":true}', calls: [] },
  ],
  ['<|channel|>analysis<|message|>cut off', { reasoning: 'cut off', text: '', calls: [] }],
  ['<|message|>hello<|return|>', { reasoning: '', text: 'hello', calls: [] }],
  [
    `<|channel|>analysis<|message|>a<|end|>${S}<|channel|>analysis<|message|>b<|end|>${S}<|channel|>final<|message|>c<|return|>`,
    { reasoning: 'a\nb', text: 'c', calls: [] },
  ],
  ['<|channel|>commentary to=functions.f<|message|>{"a":', { reasoning: '', text: '', calls: [] }],
]

test.each(cases)('%s', (input, expected) => {
  expect(read([input])).toEqual(expected)
  expect(read([...input])).toEqual(expected)
  const { reasoning, text, toolCalls } = parseWhole(parser, input)
  expect({ reasoning, text, calls: toolCalls.map((call) => [call.name, call.arguments]) }).toEqual(expected)
})

test('the result does not depend on the split of the text', () => {
  const shards = cases.flatMap(([input]) => input.match(/<\|\w+\|>|[^<]+/g) ?? [])
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...shards, '<', '<|', '😀', 'tool'), { maxLength: 15 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (parts, places) => {
        const text = parts.join('')
        const whole = read([text])
        expect(read(cut(text, places))).toEqual(whole)
        expect(read(text.split(''))).toEqual(whole)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('generation stops at the end of a message or of a call', () => {
  expect(parser.stopTokenIds).toEqual([200002, 200012])
  expect(parser.needsSpecialTokens).toBe(true)
})

const CUT = '<|channel|>commentary to=functions.dim <|constrain|>json<|message|>{"level":'

test('no part of a truncated call is content', () => {
  expect(parseWhole(parser, CUT)).toMatchObject({ text: '', toolCalls: [] })
  const before = '<|channel|>analysis<|message|>Dim it.<|end|><|start|>assistant'
  expect(parseWhole(parser, before + CUT)).toMatchObject({ reasoning: 'Dim it.', text: '', toolCalls: [] })
  expect(parseWhole(parser, `${CUT}3}<|call|>`)).toMatchObject({
    text: '',
    toolCalls: [{ arguments: '{"level":3}' }],
  })
})

test('a call without its end mark is complete if its arguments are complete', () => {
  for (const isFinished of [true, false]) {
    const collector = new OutputCollector()
    const stream = parser.open(collector)
    stream.push(`${CUT}3}`)
    stream.end(isFinished)
    expect(collector.output().toolCalls).toMatchObject([{ name: 'dim', arguments: '{"level":3}' }])
  }
})
