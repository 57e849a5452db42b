/** Line differences: applying them to one text gives the other. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lineDiff } from './test-report.ts'

const lines = fc.array(fc.constantFrom('a', 'b', 'c', ' ', ''), { minLength: 1, maxLength: 12 })

test('with full context a difference contains both texts in order', () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const script = lineDiff(before.join('\n'), after.join('\n'), 100)
      const side = (mark: string) =>
        script.filter((line) => line[0] === mark || line[0] === ' ').map((line) => line.slice(2))
      // Equal texts give no output.
      expect(script.length === 0 ? before : side('-')).toEqual(before)
      expect(script.length === 0 ? before : side('+')).toEqual(after)
    }),
  )
})

test('lines far from any change are omitted, and the gap is marked', () => {
  const before = ['1', '2', '3', '4', '5', '6', '7', '8', '9']
  const after = before.map((line) => (line === '1' || line === '9' ? `${line}!` : line))
  const expected = ['- 1', '+ 1!', '  2', '  …', '  8', '- 9', '+ 9!']
  expect(lineDiff(before.join('\n'), after.join('\n'), 1)).toEqual(expected)
})

test('very long texts are shown one after the other', () => {
  const long = Array.from({ length: 600 }, (_, at) => String(at)).join('\n')
  const script = lineDiff(long, `${long}\nmore`)
  expect(script).toHaveLength(1_201)
  expect(script.at(-1)).toBe('+ more')
})
