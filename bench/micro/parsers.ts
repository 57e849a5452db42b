/**
 * CPU time of output parsers on one thread: plain text in small and large chunks, tool calls, and hostile text of two
 * lengths. Run `node --conditions=weir-source bench/micro/parsers.ts`.
 */
import { parseArgs } from 'node:util'
import {
  type CallOptions,
  CallOutput,
  type CallSink,
} from '../../plugins/models/parsers/calls/call-output.ts'
import { toolFormats } from '../../plugins/models/parsers/formats/format-table.ts'
import type { ToolFormat } from '../../plugins/models/parsers/formats/tool-format.ts'
import { ToolTypes } from '../../plugins/models/parsers/scan/tool-types.ts'
import { type Figure, verdict } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** Repeatable; default: all. */
    format: { type: 'string', multiple: true },
  },
})
const ROUNDS = Number(flags.rounds)
const PLAIN_BYTES = 20_000_000
/** Characters per chunk of an engine that sends many tokens at once. */
const CHUNK = 4_096
/** Lowest accepted MB of plain text per second. */
const PLAIN_TARGET = 200

const options: CallOptions = {
  tools: new ToolTypes([]),
  limits: { maxCalls: 128, maxArgumentChars: 8 * 1024 * 1024 },
  keepsCutCalls: false,
  dropsTrailing: false,
  unknownTools: 'forward',
}

let deltaLength = 0
const sink: CallSink = {
  text(delta) {
    deltaLength += delta.length
  },
  callStarted() {},
  callArguments(_index, delta) {
    deltaLength += delta.length
  },
  callDone() {},
}

function read(format: ToolFormat, chunks: readonly string[]): void {
  const reader = format.open(new CallOutput(sink, format.text, options))
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
}

function cut(text: string, size: number): string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size),
  )
}

/** CPU milliseconds of each round. */
function time(run: () => void, rounds = ROUNDS): number[] {
  run()
  return Array.from({ length: rounds }, () => {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  })
}

const sentence = 'The quick brown fox, all 12 of them, jumps over the lazy dog. '
const plain = sentence.repeat(Math.ceil(PLAIN_BYTES / sentence.length))
const chunks = cut(plain, CHUNK)

function plainFigure(name: string, format: ToolFormat): Figure {
  const values = time(() => read(format, chunks)).map((ms) => plain.length / 1_000 / ms)
  return { name: `${name}, plain text`, unit: 'MB/s', values, atLeast: PLAIN_TARGET }
}

/** Openings without an end; doubling the text may slightly more than double the time. */
const attacks = [
  '<',
  '[',
  '{',
  '<tool_call>',
  '[TOOL_CALLS] [{"name":',
  '{"name":"a","arguments":{"b":',
  '[f(a=',
]

function hostileFigures(name: string, format: ToolFormat): Figure[] {
  return attacks.map((attack) => {
    const text = attack.repeat(Math.ceil(10_000_000 / attack.length))
    const half = text.slice(0, text.length / 2)
    const [small] = time(() => read(format, [half]), 1)
    const large = time(() => read(format, [text]), 3)
    return {
      name: `${name}, 10 MB of ${attack}: time against 5 MB`,
      unit: '×',
      values: large.map((ms) => ms / Math.max(small, 1)),
      target: 4,
    }
  })
}

const call = `<tool_call>\n${JSON.stringify({ name: 'write', arguments: { path: 'a.ts', text: sentence.repeat(20) } })}\n</tool_call>`
const tokens = cut(call, 4)

function callFigure(format: ToolFormat): Figure {
  const times = 200
  const values = time(() => {
    for (let i = 0; i < times; i++) read(format, tokens)
  }).map((ms) => (ms * 1_000) / times / tokens.length)
  return { name: 'qwen, a call in tokens of 4 characters', unit: 'µs a token', values, target: 2 }
}

const wanted = toolFormats.filter(({ name }) => flags.format?.includes(name) ?? true)
const figures = wanted.map(({ name, format }) => plainFigure(name, format))
for (const { name, format } of wanted)
  if (flags.format !== undefined || ['json', 'qwen', 'mistral', 'pythonic', 'qwen_xml'].includes(name))
    figures.push(...hostileFigures(name, format))
for (const { name, format } of wanted) if (name === 'qwen') figures.push(callFigure(format))
const question = 'what does it cost to read a model output?'
console.log(renderTable({ scenario: 'parsers', question, figures }))
if (deltaLength === 0 || figures.some((figure) => verdict(figure) === 'missed')) process.exitCode = 1
