/** The ring of notes between threads. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NoteRing, RING_NOTES } from './note-ring.ts'

function openBoth(): { data: NoteRing; control: NoteRing } {
  const blocks = new Map<string, SharedArrayBuffer>()
  const shared = (name: string, bytes: number) => {
    const block = blocks.get(name) ?? new SharedArrayBuffer(bytes)
    blocks.set(name, block)
    return block
  }
  return { data: new NoteRing(shared, 'notes'), control: new NoteRing(shared, 'notes') }
}

test('control reads each note once, in order, as many as it wants', () => {
  const steps = fc.array(fc.record({ write: fc.nat(40), read: fc.nat(60) }), { maxLength: 50 })
  fc.assert(
    fc.property(steps, (all) => {
      const { data, control } = openBoth()
      const written: number[] = []
      const taken: number[] = []
      const take = (low: number, high: number, value: number, name: number) => {
        expect([high, value, name]).toEqual([~low, low & 63, 7])
        taken.push(low)
      }
      for (const { write, read } of all) {
        const position = data.reserve(write)
        for (let i = 0; i < write; i++) {
          const low = written.length
          written.push(low)
          data.put(position + i, low, ~low, low & 63, 7)
        }
        const before = taken.length
        expect(control.drain(read, take)).toBe(0)
        expect(taken.length).toBe(Math.min(written.length, before + read))
      }
      control.drain(RING_NOTES, take)
      expect(taken).toEqual(written)
    }),
    { numRuns: 30 },
  )
})

test('notes that were not read in time are lost, and counted', () => {
  const { data, control } = openBoth()
  const position = data.reserve(RING_NOTES + 10)
  for (let i = 0; i < RING_NOTES + 10; i++) data.put(position + i, i, 0, 0, 1)
  const lows: number[] = []
  expect(control.drain(3, (low) => lows.push(low))).toBe(10)
  expect(lows).toEqual([10, 11, 12])
  expect(control.drain(RING_NOTES, (low) => lows.push(low))).toBe(0)
  expect(lows).toHaveLength(RING_NOTES)
})

test('a note that is not written yet is not read', () => {
  const { data, control } = openBoth()
  data.reserve(1)
  const names: number[] = []
  control.drain(1, (_low, _high, _value, name) => names.push(name))
  expect(names).toEqual([])
})
