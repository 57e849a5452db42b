import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callsFor, callWriters, expectedCalls, toolsOf } from '../../../test/support/parsers/call-writers.ts'
import { cut, streamed } from '../../../test/support/parsers/parse-in-chunks.ts'
import { runs } from '../../../test/support/thorough.ts'
import { findToolFormat, toolFormats } from './formats/format-table.ts'
import { rewriteJson } from './scan/typed-value.ts'

const places = fc.array(fc.nat(), { maxLength: 6 })
/** Prose without a mark of any format. */
const prose = fc.constantFrom('', 'Sure. ', 'Größe:\n', '😀 ')

test.each(callWriters)('calls written as $format are read back', (writer) => {
  const { format, write } = writer
  fc.assert(
    fc.property(callsFor(writer), places, prose, (given, at, before) => {
      const tools = toolsOf(given)
      const { text, calls, isWhole } = streamed(format, cut(before + write(given), at), { tools })
      const written = calls.map(([name, args]) => [name, rewriteJson(args)])
      expect(written).toEqual(expectedCalls(given))
      expect([text.trim(), isWhole]).toEqual([before.trim(), true])
    }),
    { numRuns: runs(1_000) },
  )
})

test('every format with calls has a writer', () => {
  const written = new Set(callWriters.map(({ format }) => findToolFormat(format)?.name))
  expect(toolFormats.map(({ name }) => name).filter((name) => !written.has(name))).toEqual(['passthrough'])
})
