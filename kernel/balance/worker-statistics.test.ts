import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CounterLayout } from './counter-layout.ts'
import { LastErrors } from './worker-statistics.ts'

const open = () => new LastErrors(new CounterLayout(CounterLayout.createBuffer(8, 2)))

test('any text is read back whole or cut between characters, and rows do not touch each other', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(7), fc.string({ unit: 'grapheme', maxLength: 400 }))), (notes) => {
      const errors = open()
      const last = new Map<number, string>()
      for (const [slot, text] of notes) {
        errors.note(slot, text, 5_000)
        last.set(slot, text)
      }
      for (let slot = 0; slot < 8; slot++) {
        const found = errors.of(slot)
        const expected = last.get(slot)
        if (expected === undefined) expect(found).toBeNull()
        else {
          expect(
            Buffer.from(expected)
              .toString()
              .startsWith(found?.text ?? '-'),
          ).toBe(true)
          expect(Buffer.byteLength(found?.text ?? '')).toBeLessThanOrEqual(256)
        }
      }
    }),
  )
})

test('a row is empty after a reset', () => {
  const errors = open()
  errors.note(3, 'reset: gone', 9_000)
  expect(errors.of(3)).toEqual({ text: 'reset: gone', atMs: 9_000 })
  errors.reset(3)
  expect(errors.of(3)).toBeNull()
})
