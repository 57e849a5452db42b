/** Origin patterns of operators, and the URLs that each covers. */
import { expect, test } from 'vitest'
import { covers, type OriginPattern, originOf, readOrigin } from './origin-pattern.ts'

const read = (text: string) => readOrigin(text) as OriginPattern

test.each([
  ['api.example.com', 'https:', 'api.example.com', false, 443],
  ['HTTPS://API.Example.com', 'https:', 'api.example.com', false, 443],
  ['http://10.0.0.7:8080', 'http:', '10.0.0.7', false, 8080],
  ['http://127.1', 'http:', '127.0.0.1', false, 80],
  ['https://*.example.com', 'https:', 'example.com', true, 443],
  ['http://[::1]:90', 'http:', '::1', false, 90],
])('%s is an origin', (text, scheme, host, isBelow, port) => {
  expect(readOrigin(text)).toEqual({ scheme, host, isBelow, port })
})

test.each([
  '',
  '*',
  'ftp://a',
  'https://a/path',
  'https://user@a',
  'https://*.10.0.0.1',
  'https://a:99999',
  'a b',
])('%j is not an origin', (text) => expect(readOrigin(text)).toBeNull())

test.each([
  ['https://a.example', 'https://a.example', true],
  ['https://a.example', 'http://a.example', false],
  ['https://a.example', 'https://a.example:8443', false],
  ['https://*.example', 'https://a.b.example', true],
  ['https://*.example', 'https://example', false],
  ['https://*.example', 'https://badexample', false],
  ['https://*.example', 'https://*.a.example', true],
  ['https://*.example', 'https://*.example', true],
  ['https://a.example', 'https://*.example', false],
])('%s covers %s: %s', (wide, narrow, isCovered) => {
  expect(covers(read(wide), read(narrow))).toBe(isCovered)
})

test('a trailing dot and letter case are ignored', () => {
  expect(covers(read('https://a.example'), originOf(new URL('https://A.Example./x')))).toBe(true)
})
