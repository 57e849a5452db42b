/** Streamed and non-streamed parsing agree for any split of the text; long strings are streamed as they arrive. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OutputSink } from '#kernel'
import { callWriters } from '../../../test/support/parsers/call-writers.ts'
import { type ModelOutput, modelOutputs, tools } from '../../../test/support/parsers/model-outputs.ts'
import { parseWhole } from '../../../test/support/parsers/output-collector.ts'
import { cut } from '../../../test/support/parsers/parse-in-chunks.ts'
import { OutputParsersOf } from './output-parsers.ts'
import type { DeclaredTool } from './scan/tool-types.ts'

const parsers = new OutputParsersOf({
  toolParser: null,
  reasoningParser: null,
  limits: { maxCalls: 128, maxArgumentChars: 1_000_000 },
  onChoice: () => {},
  onTemplate: () => {},
  onUnknown: () => {},
})

function parserOf(
  format: string,
  reasoningFormat = 'passthrough',
  declared: readonly DeclaredTool[] = tools,
) {
  return parsers.parserFor({
    model: 'x',
    toolParser: format,
    reasoningParser: format === 'harmony' ? format : reasoningFormat,
    tools: declared.map((one) => ({ type: 'function' as const, function: one })),
  })
}

interface Piece {
  readonly kind: 'reasoning' | 'text' | 'start' | 'arguments' | 'done'
  readonly written: string
}

/** The pieces that a client receives, and the input length at which each was sent. */
function listen(parser: ReturnType<typeof parserOf>, chunks: readonly string[]) {
  const pieces: (Piece & { readonly at: number })[] = []
  let at = 0
  const add = (kind: Piece['kind'], written: string) => pieces.push({ kind, written, at })
  const sink: OutputSink = {
    reasoning: (delta) => add('reasoning', delta),
    text: (delta) => add('text', delta),
    toolCallStarted: (_index, _id, name) => add('start', name),
    toolCallArguments: (_index, delta) => add('arguments', delta),
    toolCallDone: (_index, isComplete) => add('done', String(isComplete)),
  }
  const stream = parser.open(sink)
  for (const chunk of chunks) {
    at += chunk.length
    stream.push(chunk)
  }
  stream.end()
  return pieces
}

function resultOf(pieces: readonly Piece[]) {
  const result = {
    reasoning: '',
    text: '',
    calls: [] as { name: string; written: string; isComplete: boolean }[],
  }
  for (const { kind, written } of pieces) {
    const last = result.calls.at(-1)
    if (kind === 'reasoning' || kind === 'text') result[kind] += written
    else if (kind === 'start') result.calls.push({ name: written, written: '', isComplete: false })
    else if (last !== undefined && kind === 'arguments') last.written += written
    else if (last !== undefined) last.isComplete = written === 'true'
  }
  return result
}

function expectAgreement(
  { format, reasoningFormat, input }: ModelOutput,
  chunkings: Iterable<readonly string[]>,
) {
  const parser = parserOf(format, reasoningFormat)
  const direct = resultOf(listen(parser, [input]))
  const whole = parseWhole(parser, input)
  const complete = direct.calls.filter(({ isComplete }) => isComplete)
  for (const { written } of complete) JSON.parse(written)
  expect([whole.reasoning, whole.text]).toEqual([direct.reasoning, direct.text])
  expect(whole.toolCalls.map((call) => [call.name, call.arguments])).toEqual(
    complete.map(({ name, written }) => [name, written]),
  )
  for (const chunks of chunkings) expect(resultOf(listen(parser, chunks)), chunks.join('|')).toEqual(direct)
  return whole
}

function* everyCut(input: string) {
  yield [...input]
  for (let at = 0; at <= input.length; at++) yield [input.slice(0, at), input.slice(at)]
}

test.each(modelOutputs)('$format: $what, in $input', (output) => {
  const { reasoning = '', text, calls } = output
  const whole = expectAgreement(output, everyCut(output.input))
  if (calls === null) return
  expect(whole.reasoning).toBe(reasoning)
  expect(whole.toolCalls.map((call) => [call.name, call.arguments])).toEqual(calls)
  expect(whole.text).toBe(text ?? '')
})

test.each(modelOutputs)('$format: both modes agree on $input truncated at any place', (output) => {
  for (let end = 0; end < output.input.length; end++) {
    const input = output.input.slice(0, end)
    expectAgreement({ ...output, input }, [[...input]])
  }
})

/** Formats whose strings end only with a mark or a quote, so that their text can be streamed immediately. */
const literal = callWriters.filter(({ carries }) => carries !== 'python')
const LINE = 'some words of a line\n'
const LENGTH = 4

test.each(literal)('a long string in $format is streamed as it arrives', ({ format, write }) => {
  const body = LINE.repeat(60)
  const input = write([
    {
      name: 'save',
      args: [
        ['file', 'a'],
        ['body', body],
      ],
    },
  ])
  const tokens = Array.from({ length: Math.ceil(input.length / LENGTH) }, (_, index) =>
    input.slice(index * LENGTH, (index + 1) * LENGTH),
  )
  const pieces = listen(parserOf(format), tokens).filter(({ kind }) => kind === 'arguments')
  expect(pieces.length).toBeGreaterThan((0.9 * body.length) / LENGTH)
  const silences = pieces.slice(1).map(({ at }, index) => at - pieces[index].at)
  // The mark and the key between two values.
  expect(Math.max(...silences)).toBeLessThan(120)
})

const BREAKS = ['\n', '\r\n', '\r', '\n\n', '']
/** Strings of mark and JSON fragments; none contains a complete end mark of a value. */
const hostile = fc
  .tuple(
    fc.constantFrom(...BREAKS),
    fc.array(
      fc.constantFrom(
        '<',
        '</',
        '<parameter=',
        '<arg_key>',
        '<tool_call>',
        '</tool_call>',
        '"',
        '\\',
        '{',
        '}',
        '[',
        ']',
        '&lt;',
        '&',
        '😀',
        '\ud83d',
        '\u0000',
        'null',
        '7',
        ' ',
        'x',
        '\n',
        '\r',
        ']]',
        '<|',
        '<｜',
      ),
      { maxLength: 12 },
    ),
    fc.constantFrom(...BREAKS),
  )
  .map(([before, parts, behind]) => before + parts.join('') + behind)

test.each(callWriters)(
  'calls of $format with hostile strings are the same streamed and non-streamed',
  (writer) => {
    const declared = [
      {
        name: 'save',
        parameters: { properties: { file: { type: 'string' }, body: { type: ['null', 'string'] } } },
      },
    ]
    fc.assert(
      fc.property(
        hostile,
        hostile,
        fc.boolean(),
        fc.array(fc.nat(), { maxLength: 12 }),
        (file, body, hasTypes, places) => {
          const input = writer.write([
            {
              name: 'save',
              args: [
                ['file', file],
                ['body', body],
              ],
            },
          ])
          const parser = parserOf(
            writer.format,
            undefined,
            hasTypes ? declared : [{ name: 'save', parameters: {} }],
          )
          const direct = resultOf(listen(parser, [input]))
          for (const { written, isComplete } of direct.calls) if (isComplete) JSON.parse(written)
          expect(resultOf(listen(parser, cut(input, places)))).toEqual(direct)
          expect(resultOf(listen(parser, input.split('')))).toEqual(direct)
          const complete = direct.calls.filter(({ isComplete }) => isComplete)
          expect(parseWhole(parser, input).toolCalls.map((call) => call.arguments)).toEqual(
            complete.map(({ written }) => written),
          )
        },
      ),
      { numRuns: 300 },
    )
  },
)
