import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkWorkerUrl, schemeOf, workerKey } from './worker-url.ts'

test('the scheme selects the connection mode; any scheme name is allowed', () => {
  for (const url of ['http://10.1.2.3:8000', 'https://Api.Example.com/base', 'grpc://w:9', 'lines://[::1]:9'])
    expect(() => checkWorkerUrl(url)).not.toThrow()
  expect(['grpcs://w', 'host', 'HTTP://host', ''].map(schemeOf)).toEqual(['grpcs', '', '', ''])
})

test.each([
  '',
  'host:8000',
  'HTTP://host',
  'Grpc://host',
  '1://host',
  'http://',
  'http:///path',
  'grpc://',
  'http://host:99999',
  'http://ho st',
  ' http://host',
  'http://host\\x',
  'http://user:pw@host',
  'http://key@host',
  'http://host?x=1',
  'http://host#x',
])('%j is rejected with 400', (url) => {
  expect(() => checkWorkerUrl(url)).toThrow(
    expect.objectContaining({ code: 'invalid_worker_url', status: 400, param: 'url' }),
  )
})

test('a URL has at most 2,048 characters', () => {
  const url = (length: number) => 'http://host/'.padEnd(length, 'a')
  expect(() => checkWorkerUrl(url(2_048))).not.toThrow()
  expect(() => checkWorkerUrl(url(2_049))).toThrow(/at most 2048 characters/)
})

test('any text is accepted or rejected as a bad URL', () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('http://', 'https://', 'grpc://', ''), (text, scheme) => {
      try {
        checkWorkerUrl(scheme + text)
        expect(schemeOf(scheme + text)).not.toBe('')
      } catch (error) {
        expect(error).toMatchObject({ code: 'invalid_worker_url' })
      }
    }),
  )
})

test.each([
  ['http://h:1', 'http://h:1/'],
  ['http://h:1', 'http://H:1//'],
  ['http://h', 'http://h:80'],
  ['https://h', 'https://h:443/v1'],
  ['http://h/a', 'http://h/a/v1/'],
  ['http://[::1]:1', 'http://[0:0::1]:1/'],
])('%s and %s are one worker', (one, other) => {
  expect(workerKey(one)).toBe(workerKey(other))
})

test.each([
  ['http://h:1', 'http://h:2'],
  ['http://h', 'https://h'],
  ['http://h', 'grpc://h'],
  ['http://h/a', 'http://h/A'],
  ['http://h/a', 'http://h/av1'],
  ['https://h:80', 'https://h'],
])('%s and %s are two workers', (one, other) => {
  expect(workerKey(one)).not.toBe(workerKey(other))
})

test('workerKey is idempotent', () => {
  fc.assert(
    fc.property(fc.webUrl(), (url) => {
      expect(workerKey(workerKey(url))).toBe(workerKey(url))
    }),
  )
})
