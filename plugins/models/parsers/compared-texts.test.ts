/** Texts that were also given to another implementation: results are as listed, and each difference is judged. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseWhole } from '../../../test/support/parsers/output-collector.ts'
import { whole } from '../../../test/support/parsers/parse-in-chunks.ts'
import { OutputParsersOf } from './output-parsers.ts'
import { findReasoningFormat } from './reasoning/reasoning-table.ts'
import type { DeclaredTool } from './scan/tool-types.ts'

type Parsed = ReturnType<typeof whole>

interface Row {
  readonly format: string
  readonly input: string
  readonly tools?: readonly DeclaredTool[]
  readonly ours: Parsed
  /** Only if it differs. */
  readonly theirs?: Parsed
  readonly judgement?: string
}

/** A chat response, parsed with the reasoning of its format. */
interface ChatRow extends Pick<Row, 'format' | 'input' | 'judgement'> {
  readonly ours: Parsed & { readonly reasoning: string }
  readonly theirs?: ChatRow['ours']
}

function readList<T>(name: string): readonly T[] {
  return JSON.parse(
    readFileSync(new URL(`../../../test/fixtures/parsers/${name}`, import.meta.url), 'utf8'),
  ) as readonly T[]
}

const rows = readList<Row>('compared-texts.json')
const chats = readList<ChatRow>('compared-chats.json')

test.each(rows)('$format: $input gives the listed result', ({ format, input, tools, ours }) => {
  expect(whole(format, input, { tools })).toEqual(ours)
})

const parsers = new OutputParsersOf({
  toolParser: null,
  reasoningParser: null,
  limits: { maxCalls: 128, maxArgumentChars: 1_000_000 },
  onChoice: () => {},
  onTemplate: () => {},
  onUnknown: () => {},
})
const parameters = { type: 'object', properties: { x: { type: 'integer' }, s: { type: 'string' } } }
const tools = ['f', 'g'].map((name) => ({ type: 'function' as const, function: { name, parameters } }))

test.each(chats)('a chat in $format: $input gives the listed result', ({ format, input, ours }) => {
  const reasoningParser = findReasoningFormat(format) === undefined ? 'passthrough' : format
  const parser = parsers.parserFor({ model: 'x', toolParser: format, reasoningParser, tools })
  const { reasoning, text, toolCalls } = parseWhole(parser, input)
  const calls = toolCalls.map((call) => [call.name, call.arguments])
  expect({ reasoning, text, calls }).toEqual(ours)
})

test('at least 200 texts were compared, and every difference has a judgement', () => {
  expect(rows.length).toBeGreaterThanOrEqual(200)
  const differing = [...rows, ...chats].filter(({ theirs }) => theirs !== undefined)
  expect(differing.filter(({ judgement }) => !/^(ours|even|theirs): ./.test(judgement ?? ''))).toEqual([])
  for (const { ours, theirs } of differing) expect(theirs).not.toEqual(ours)
})
