/** Invariants of every format, for any text. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callsFor, callWriters, expectedCalls, toolsOf } from '../../../test/support/parsers/call-writers.ts'
import { OutputCollector } from '../../../test/support/parsers/output-collector.ts'
import {
  cut,
  formatOf,
  openOutput,
  reasoned,
  streamed,
  whole,
} from '../../../test/support/parsers/parse-in-chunks.ts'
import { nearlyValidOutput, randomOutput } from '../../../test/support/parsers/random-outputs.ts'
import { runs } from '../../../test/support/thorough.ts'
import { toolFormats } from './formats/format-table.ts'
import { OutputParsersOf } from './output-parsers.ts'
import { reasoningFormats } from './reasoning/reasoning-table.ts'
import { rewriteJson } from './scan/typed-value.ts'

const names = toolFormats.map(({ name }) => name)
const places = fc.array(fc.nat(), { maxLength: 12 })
const kept = { dropsTrailing: false }

type Step = readonly [kind: 'text' | 'start' | 'arguments' | 'done', index: number, written: string]

/** Records every step that a sink receives. */
function recorder() {
  const steps: Step[] = []
  const joined = (kind: Step[0]) => steps.flatMap(([of, , written]) => (of === kind ? written : []))
  return {
    steps,
    joined,
    text: (delta: string) => steps.push(['text', -1, delta]),
    callStarted: (index: number, name: string) => steps.push(['start', index, name]),
    callArguments: (index: number, delta: string) => steps.push(['arguments', index, delta]),
    callDone: (index: number) => steps.push(['done', index, '']),
  }
}

test.each(names)('%s emits calls in order, each once', (name) => {
  fc.assert(
    fc.property(fc.oneof(nearlyValidOutput, randomOutput), places, (text, at) => {
      const sink = recorder()
      const format = formatOf(name)
      const reader = format.open(openOutput(format, sink, kept))
      for (const chunk of cut(text, at)) reader.push(chunk)
      reader.end()
      let open = -1
      let started = 0
      for (const [kind, index] of sink.steps) {
        if (kind === 'start') expect([index, open]).toEqual([started, -1])
        else expect(index).toBe(open)
        if (kind === 'start') open = started++
        if (kind === 'done') open = -1
      }
      expect(open).toBe(-1)
    }),
    { numRuns: runs(300) },
  )
})

test.each(names)('two parsers of %s share no state', (name) => {
  const format = formatOf(name)
  fc.assert(
    fc.property(
      nearlyValidOutput,
      nearlyValidOutput,
      fc.array(fc.nat(), { maxLength: 30 }),
      (first, second, turns) => {
        const sides = [first, second].map((input) => {
          const sink = recorder()
          return { input, sink, reader: format.open(openOutput(format, sink, kept)), at: 0 }
        })
        for (const turn of turns) {
          const side = sides[turn % 2]
          side.reader.push(side.input.slice(side.at, side.at + (turn % 13)))
          side.at = Math.min(side.at + (turn % 13), side.input.length)
        }
        for (const { reader, input, at } of sides.toReversed()) reader.push(input.slice(at))
        for (const { reader } of sides) reader.end()
        for (const { input, sink } of sides) {
          const { text, calls } = streamed(name, [input], kept)
          expect(sink.joined('text').join('')).toBe(text)
          expect(sink.joined('start')).toEqual(calls.map(([called]) => called))
          expect(sink.joined('arguments').join('')).toBe(calls.map(([, written]) => written).join(''))
        }
      },
    ),
    { numRuns: runs(300) },
  )
})

/** Characters of every plane, lone surrogates, control characters, and starts of marks. */
const anything = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 5 }),
      fc.constantFrom(
        '\ud83d',
        '\ude00',
        '\u0000',
        '\u001b',
        '\u2028',
        '\ufeff',
        '\r',
        '<',
        '[',
        '{',
        '"',
        '\\',
        '◁',
        '｜',
      ),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(''))

test.each(names)('%s accepts any text', (name) => {
  fc.assert(
    fc.property(anything, places, (text, at) => {
      const direct = streamed(name, [text], kept)
      expect(streamed(name, cut(text, at), kept)).toEqual(direct)
      whole(name, text)
    }),
    { numRuns: runs(300) },
  )
})

test.each(reasoningFormats.map(({ name }) => name))('reasoning of %s accepts any text', (name) => {
  fc.assert(
    fc.property(anything, places, fc.boolean(), (text, at, isInside) => {
      expect(reasoned(name, cut(text, at), isInside)).toEqual(reasoned(name, [text], isInside))
    }),
    { numRuns: runs(300) },
  )
})

/** Formats whose frames and wrappers are always markup, or whose text is trimmed. */
const dropsMarkup = new Set(['inkling', 'kimi_k3', 'cohere', 'sarashina'])

test.each(names)('%s preserves a text without calls', (name) => {
  fc.assert(
    fc.property(fc.oneof(nearlyValidOutput, randomOutput), places, (input, at) => {
      const { text, calls } = streamed(name, cut(input, at), kept)
      if (dropsMarkup.has(name)) expect(isWithin(text, input)).toBe(true)
      else if (calls.length === 0) expect(text).toBe(input)
      else expect(isWithin(text, input)).toBe(true)
    }),
    { numRuns: runs(300) },
  )
})

/** True if `all` contains the characters of `part` in order. */
function isWithin(part: string, all: string): boolean {
  let at = 0
  for (let i = 0; i < part.length; i++) {
    at = all.indexOf(part[i], at) + 1
    if (at === 0) return false
  }
  return true
}

test.each(callWriters)('a too long call of $format is held back only up to the limit', (writer) => {
  const MAX_ARGUMENTS = 1_000
  const SIZE = 100_000
  const long = 'x'.repeat(SIZE)
  const text = writer.write([{ name: 'f', args: [['a', long]] }])
  const limits = { maxCalls: 128, maxArgumentChars: MAX_ARGUMENTS }
  for (const keepsCutCalls of [true, false]) {
    let told = 0
    const format = formatOf(writer.format)
    const sink = {
      text: (delta: string) => {
        told += delta.length
      },
      callStarted: () => {},
      callArguments: (_: number, delta: string) => {
        told += delta.length
      },
      callDone: () => {},
    }
    const reader = format.open(openOutput(format, sink, { ...kept, keepsCutCalls, limits }))
    let pushed = 0
    let most = 0
    for (let at = 0; at < text.length; at += 50) {
      pushed += text.slice(at, at + 50).length
      reader.push(text.slice(at, at + 50))
      most = Math.max(most, pushed - told)
    }
    // Frames are markup: those that are not a call are dropped.
    if (writer.format !== 'inkling') expect(most).toBeLessThan(2 * MAX_ARGUMENTS + 500)
    reader.end()
    if (keepsCutCalls) expect(whole(writer.format, text, { limits, dropsTrailing: false }).calls).toEqual([])
  }
})

const parsers = new OutputParsersOf({
  toolParser: null,
  reasoningParser: null,
  limits: { maxCalls: 128, maxArgumentChars: 1_000_000 },
  onChoice: () => {},
  onTemplate: () => {},
  onUnknown: () => {},
})

/** The reasoning format of each family, and a plain one for the others. */
const reasoningOf = new Map([
  ['inkling', 'inkling'],
  ['kimi_k3', 'kimi_k3'],
  ['cohere', 'cohere_cmd'],
  ['gemma4', 'gemma4'],
  ['minimax_m3', 'minimax_m3'],
  ['seed_oss', 'seed_oss'],
  ['mistral_v13', 'mistral_v13'],
  ['hy_v4', 'hy_v4'],
  ['deepseek_v41', 'deepseek_v41'],
])
const marksOf = new Map([
  ['inkling', ['<|content_thinking|>', '<|end_message|>']],
  ['kimi_k3', ['<|open|>think<|sep|>', '<|close|>think<|sep|>']],
  ['hy_v4', ['<think>', '</think>']],
])

test.each(callWriters)('calls of $format after reasoning are the same as without', (writer) => {
  const reasoningParser = reasoningOf.get(writer.format) ?? 'qwen3'
  const { marks } = reasoningFormats.find(({ name }) => name === reasoningParser) ?? {}
  const [start, end] = marksOf.get(reasoningParser) ?? [marks?.start ?? '', marks?.end ?? '']
  const thought = fc.constantFrom('hm', 'so {"a": [1]} it is', 'Größe?\n', '')
  fc.assert(
    fc.property(
      callsFor(writer),
      thought,
      fc.constantFrom('', 'Sure.\n'),
      places,
      (given, reasoning, text, at) => {
        const tools = toolsOf(given).map((one) => ({ type: 'function' as const, function: one }))
        const parser = parsers.parserFor({ model: 'x', toolParser: writer.format, reasoningParser, tools })
        const collector = new OutputCollector()
        const stream = parser.open(collector)
        for (const chunk of cut(`${start}${reasoning}${end}${text}${writer.write(given)}`, at))
          stream.push(chunk)
        stream.end()
        const output = collector.output()
        expect([output.reasoning, output.text.trim()]).toEqual([reasoning, text.trim()])
        expect(output.toolCalls.map((call) => [call.name, rewriteJson(call.arguments)])).toEqual(
          expectedCalls(given),
        )
      },
    ),
    { numRuns: runs(300) },
  )
})
