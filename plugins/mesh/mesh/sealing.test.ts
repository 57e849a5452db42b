/** Sealed texts open only as they were sealed. */
import { expect, test } from 'vitest'
import { Sealing } from './sealing.ts'

const sealing = new Sealing('0123456789abcdef', 'prod')

test('a sealed text opens with its context only', () => {
  const sealed = sealing.seal('secret', 'worker a')
  expect(sealing.open(sealed, 'worker a')).toBe('secret')
  expect(() => sealing.open(sealed, 'worker b')).toThrow(/another secret/)
})

test.each([4, 8, 12, 15])('a text whose tag was cut to %i bytes does not open', (tagBytes) => {
  const sealed = Buffer.from(sealing.seal('', 'worker a').slice(3), 'base64url')
  const cut = `v1.${sealed.subarray(0, 12 + tagBytes).toString('base64url')}`
  expect(() => sealing.open(cut, 'worker a')).toThrow(/another secret/)
})
