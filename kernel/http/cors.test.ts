import { expect, test } from 'vitest'
import { isForeignPage, isLoopback } from './cors.ts'

const isListed = (origin: string) => origin === 'https://console.example'

test.each([
  [undefined, 'anything.example', false],
  ['http://127.0.0.1:30000', '127.0.0.1:30000', false],
  ['http://localhost:30000', 'localhost:30000', false],
  ['http://[::1]:30000', '[::1]:30000', false],
  ['https://console.example', '127.0.0.1:30000', false],
  ['http://evil.example', '127.0.0.1:30000', true],
  ['http://127.0.0.1:8080', '127.0.0.1:30000', true],
  ['null', '127.0.0.1:30000', true],
  // DNS rebinding: a foreign name that resolves to this machine.
  ['http://evil.example:30000', 'evil.example:30000', true],
  ['http://127.0.0.1.evil.example', '127.0.0.1.evil.example', true],
  ['http://x', undefined, true],
])('origin %s at host %s: foreign %s', (origin, host, expected) => {
  expect(isForeignPage(origin, host, isListed, false)).toBe(expected)
})

test.each([
  ['127.0.0.1:30000', false],
  ['localhost:30000', false],
  ['[::1]:30000', false],
  ['10.0.0.7', false],
  ['console.example', false],
  ['evil.example:30000', true],
  ['127.0.0.1.evil.example', true],
  [undefined, false],
])('a read at host %s, of a gateway for this machine: foreign %s', (host, expected) => {
  expect(isForeignPage(undefined, host, isListed, true)).toBe(expected)
})

test('loopback addresses are recognised', () => {
  expect(['127.0.0.1', '127.8.0.1', '::1', 'localhost'].every(isLoopback)).toBe(true)
  expect(['0.0.0.0', '::', '10.0.0.1', '127.evil.example'].some(isLoopback)).toBe(false)
})
