import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cut, reasoned } from '../../../test/support/parsers/parse-in-chunks.ts'
import { runs } from '../../../test/support/thorough.ts'
import { parseReasoning } from './parse-text.ts'
import { findReasoningFormat, reasoningFormats } from './reasoning/reasoning-table.ts'

const marks = new Map([
  ['kimi', ['◁think▷', '◁/think▷']],
  ['minimax_m3', ['<mm:think>', '</mm:think>']],
  ['k2_horizon', ['<ifm|think>', '</ifm|think>']],
  ['seed_oss', ['<seed:think>', '</seed:think>']],
  ['mistral_v13', ['[THINK]', '[/THINK]']],
  ['gemma4', ['<|channel>thought\n', '<channel|>']],
  ['cohere_cmd', ['<|START_THINKING|>', '<|END_THINKING|>']],
  ['kimi_k3', ['<|open|>think<|sep|>', '<|close|>think<|sep|>']],
  ['inkling', ['<|content_thinking|>', '<|end_message|>']],
])
const THINK = ['<think>', '</think>']
const formats = reasoningFormats.map(({ name, isAlwaysInside }) => ({
  name,
  isAlwaysInside,
  start: (marks.get(name) ?? THINK)[0],
  end: (marks.get(name) ?? THINK)[1],
}))
const tagged = formats.filter(({ name }) => name !== 'inkling')

/** Parses at once, like the parse route. */
function parsed(name: string, text: string) {
  const format = findReasoningFormat(name)
  if (format === undefined) throw new TypeError(`no format ${name}`)
  return parseReasoning(format, text)
}

test.each(formats)('$name splits at its marks, for any split of the text', ({ name, start, end }) => {
  const input = `${start}a${end} b`
  for (let at = 0; at <= input.length; at++) {
    expect(reasoned(name, [input.slice(0, at), input.slice(at)])).toEqual({ reasoning: 'a', text: ' b' })
  }
  const decoder = new TextDecoder()
  const bytes = [...Buffer.from(input)].map((byte) => decoder.decode(Buffer.of(byte), { stream: true }))
  expect(reasoned(name, bytes)).toEqual({ reasoning: 'a', text: ' b' })
  expect(parsed(name, input)).toEqual({ reasoning: 'a', text: ' b' })
})

test.each(formats)('$name removes its marks and nothing else', ({ name, start, end }) => {
  const shards = fc.array(fc.constantFrom(start, end, 'a', ' ', '<', '</', '😀', '<|', '◁'), {
    maxLength: 12,
  })
  const withoutMarks = (text: string) => text.replaceAll(start, '').replaceAll(end, '')
  fc.assert(
    fc.property(shards, fc.boolean(), fc.array(fc.nat(), { maxLength: 8 }), (parts, isInside, places) => {
      const text = parts.join('.')
      const told: string[] = []
      const sink = {
        reasoning: (delta: string) => told.push(delta),
        text: (delta: string) => told.push(delta),
        reasoningEnded: () => {},
        end: () => {},
      }
      const reader = findReasoningFormat(name)?.open(sink, isInside)
      for (const chunk of cut(text, places)) reader?.push(chunk)
      reader?.end()
      expect(withoutMarks(told.join(''))).toBe(withoutMarks(text))
    }),
    { numRuns: runs(1_000) },
  )
})

test.each(formats)('the result of $name does not depend on the split of the text', ({ name, start, end }) => {
  const shards = [
    start,
    end,
    start.slice(0, 3),
    end.slice(0, -1),
    'a',
    ' ',
    '<',
    '<|',
    '😀',
    '<think:x>',
    '</think:x>',
  ]
  const more = [
    '<|open|>response<|sep|>',
    '<|open|>tools<|sep|>',
    '<|message_model|>',
    '<|content_text|>',
    '{"a":1}',
  ]
  const randomOutput = fc.array(fc.constantFrom(...shards, ...more, '<|content_invoke_tool_json|>'), {
    maxLength: 12,
  })
  fc.assert(
    fc.property(
      randomOutput,
      fc.array(fc.nat(), { maxLength: 8 }),
      fc.boolean(),
      (parts, places, isInside) => {
        const text = parts.join('')
        const whole = reasoned(name, [text], isInside)
        expect(reasoned(name, cut(text, places), isInside)).toEqual(whole)
        expect(reasoned(name, text.split(''), isInside)).toEqual(whole)
      },
    ),
    { numRuns: runs(1_000) },
  )
})

test.each(formats)('$name without marks', ({ name, isAlwaysInside, end }) => {
  expect(reasoned(name, ['plain ', 'text'])).toEqual(
    isAlwaysInside ? { reasoning: 'plain text', text: '' } : { reasoning: '', text: 'plain text' },
  )
  if (isAlwaysInside) expect(reasoned(name, [`a${end}b`])).toEqual({ reasoning: 'a', text: 'b' })
})

test.each(formats)('$name truncated inside the reasoning', ({ name, start }) => {
  expect(reasoned(name, [`${start}cut`])).toEqual({ reasoning: 'cut', text: '' })
})

test('split tags are found, and other tags are kept', () => {
  expect(reasoned('qwen3', ['<think>abc</thi', 'nk>d'])).toEqual({ reasoning: 'abc', text: 'd' })
  expect(reasoned('qwen3', ['</t', 'able>'])).toEqual({ reasoning: '', text: '</table>' })
})

test.each(tagged)('$name returns an incomplete mark as text', ({ name, start, end }) => {
  for (const rest of ['<', start.slice(0, -1), start.slice(0, 1)]) {
    const { reasoning, text } = reasoned(name, ['x', rest])
    expect(reasoning + text).toBe(`x${rest}`)
    expect(parsed(name, `x${rest}`)).toEqual({ reasoning, text })
  }
  for (const rest of ['<', end.slice(0, -1)])
    expect(reasoned(name, [`${start}x`, rest])).toEqual({ reasoning: `x${rest}`, text: '' })
})

test.each(formats)('$name with an empty block and with two', ({ name, start, end }) => {
  expect(reasoned(name, [`${start}${end}x`])).toEqual({ reasoning: '', text: 'x' })
  const two = `${start}a${end}b${start}c${end}d`
  for (const chunks of [[two], [...two]])
    expect(reasoned(name, chunks)).toEqual({ reasoning: 'ac', text: 'bd' })
  expect(parsed(name, two)).toEqual({ reasoning: 'ac', text: 'bd' })
})

test('text before the first block is text', () => {
  expect(reasoned('qwen3', ['x<think>a</think>b'])).toEqual({ reasoning: 'a', text: 'xb' })
})

test('kimi_k3 leaves tool calls to the tool parser', () => {
  const tools = '<|open|>tools<|sep|><|open|>call tool="f"<|sep|>'
  expect(reasoned('kimi_k3', [`hm${tools}`], true)).toEqual({ reasoning: 'hm', text: tools })
})

test('kimi_k3 reads the answer after the end of a response that its prompt did not start', () => {
  const input = 'so<|close|>response<|sep|>the answer'
  expect(reasoned('kimi_k3', [input], true)).toEqual({ reasoning: 'so', text: 'the answer' })
})

test('cohere_cmd removes the wrappers', () => {
  const input = '<|START_THINKING|>m<|END_THINKING|><|START_RESPONSE|>n<|END_RESPONSE|>'
  expect(reasoned('cohere_cmd', [...input])).toEqual({ reasoning: 'm', text: 'n' })
})

test('hy_v4 ends reasoning only with its opening suffix', () => {
  expect(reasoned('hy_v4', ['<think:x1>a</think>b</think:x1>c'])).toEqual({
    reasoning: 'a</think>b',
    text: 'c',
  })
})

test.each(['</think:opensource>', '</think>', '</think:x-1_Y>'])(
  'hy_v4 ends reasoning that the prompt opened with %s, for any split of the text',
  (end) => {
    const input = `a</thinking>b</think:>c${end}d`
    for (let at = 0; at <= input.length; at++)
      expect(reasoned('hy_v4', [input.slice(0, at), input.slice(at)], true)).toEqual({
        reasoning: 'a</thinking>b</think:>c',
        text: 'd',
      })
  },
)

test('inkling leaves the frames of calls to the tool parser', () => {
  const call = '<|content_invoke_tool_json|>{"name":"f","args":{"t":"<|end_message|>"}}<|end_message|>'
  const input = `<|content_thinking|>r<|end_message|><|message_model|>f${call}<|message_model|><|content_text|>t`
  expect(reasoned('inkling', [...input])).toEqual({ reasoning: 'r', text: `${call}t` })
})
