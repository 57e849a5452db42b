import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalAddress } from './canonical-address.ts'

test.each([
  ['10.0.0.5', '10.0.0.5'],
  ['0000:0000:0000:0000:0000:ffff:7f00:0001', '127.0.0.1'],
  ['::FFFF:1.2.3.4', '1.2.3.4'],
  ['2001:0DB8:0000:0000:0001:0000:0000:0001', '2001:db8::1:0:0:1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['::ffff:0:1.2.3.4', '::ffff:0:102:304'],
  ['0:0:0:0:0:0:0:1', '::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['', ''],
  ['no address', 'no address'],
  ['a:b', 'a:b'],
])('%j is written %j', (address, text) => {
  expect(canonicalAddress(address)).toBe(text)
})

test('addresses with equal bits have one spelling', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const text = canonicalAddress(address)
      expect(canonicalAddress(text)).toBe(text)
      expect(canonicalAddress(address.toUpperCase())).toBe(text)
    }),
  )
})
