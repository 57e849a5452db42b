/** Texts that were also given to the Rust reference gateway: ours are as the list says, and each difference is judged. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { whole } from './fixtures/stream-parts.ts'
import type { DeclaredTool } from './scan/tool-types.ts'

type Parsed = ReturnType<typeof whole>

interface Row {
  readonly format: string
  readonly input: string
  readonly tools?: readonly DeclaredTool[]
  readonly ours: Parsed
  /** Only where it differs. */
  readonly theirs?: Parsed
  readonly judgement?: string
}

const rows = JSON.parse(
  readFileSync(new URL('./fixtures/compared-texts.json', import.meta.url), 'utf8'),
) as readonly Row[]

test.each(rows)('$format: $input gives what the list says', ({ format, input, tools, ours }) => {
  expect(whole(format, input, { tools })).toEqual(ours)
})

test('at least 200 texts were compared, and every difference has a judgement', () => {
  expect(rows.length).toBeGreaterThanOrEqual(200)
  const differing = rows.filter(({ theirs }) => theirs !== undefined)
  expect(differing.filter(({ judgement }) => !/^(ours|even|theirs): ./.test(judgement ?? ''))).toEqual([])
  for (const { ours, theirs } of differing) expect(theirs).not.toEqual(ours)
})
