import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { WorkerEntry } from '../contracts/worker.ts'
import { KeyMask } from './key-mask.ts'

const KEY = 'sk-worker-sk-w0rker'
const maskOf = (apiKey: string | null) => KeyMask.of({ apiKey } as WorkerEntry)

test('a key is masked at any split, and every other byte passes', () => {
  const pieces = fc.array(fc.constantFrom(KEY, 'sk-', 'sk-worker-', 'text', KEY.slice(1), 'ä', 's'))
  fc.assert(
    fc.property(pieces, fc.array(fc.nat()), (parts, cuts) => {
      const text = parts.join('')
      const bytes = Buffer.from(text)
      const mask = maskOf(KEY) as KeyMask
      const passed: Buffer[] = []
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
      for (let at = 1; at < places.length; at++)
        passed.push(Buffer.from(mask.pass(Buffer.from(bytes.subarray(places[at - 1], places[at])))))
      passed.push(mask.rest() ?? Buffer.alloc(0))
      expect(Buffer.concat(passed).toString()).toBe(text.replaceAll(KEY, '*'.repeat(KEY.length)))
    }),
  )
})

test('workers without a key, or with a short one, have no mask', () => {
  expect([maskOf(null), maskOf('short')]).toEqual([null, null])
})
