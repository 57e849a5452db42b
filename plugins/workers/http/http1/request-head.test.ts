import fc from 'fast-check'
import { expect, test } from 'vitest'
import { writeRequestHead } from './request-head.ts'
import { readWorkerUrl } from './worker-origin.ts'

const template = { pathPrefix: '', versionlessPrefix: null, afterPath: ' HTTP/1.1\r\nhost: h\r\n' }
const write = (method: string, path: string, headers: string[], body: Buffer | null = null) =>
  writeRequestHead({ ...template, lines: [] }, { method, path, headers, body })

test('a head does not depend on the requests before it', () => {
  const text = fc.constantFrom('a', 'b', 'host', 'a\r\nb: c', '', 'x'.repeat(300))
  const request = fc.record({
    method: fc.constantFrom('GET', 'POST', 'G T'),
    path: fc.constantFrom('/', '/v1/a', '/a b'),
    headers: fc.array(fc.tuple(text, text), { maxLength: 20 }).map((pairs) => pairs.flat()),
    body: fc.constantFrom(null, Buffer.alloc(3)),
  })
  fc.assert(
    fc.property(fc.array(request), (requests) => {
      const known = { ...template, lines: [] }
      for (const one of requests)
        expect(writeRequestHead(known, one)).toBe(write(one.method, one.path, one.headers, one.body))
    }),
  )
})

test('content-length is written for methods with a body', () => {
  expect(write('GET', '/', [])).toBe('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  expect(write('POST', '/', [])).toBe('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n')
  expect(write('DELETE', '/', [], Buffer.alloc(3))).toContain('\r\ncontent-length: 3\r\n\r\n')
})

test('connection headers are dropped', () => {
  const own = ['host', 'connection', 'content-length', 'transfer-encoding', 'te', 'upgrade', 'expect']
  expect(
    write(
      'GET',
      '/',
      own.flatMap((name) => [name, '1']),
    ),
  ).toBe(write('GET', '/', []))
})

test('no header name or value can end a line', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('a\r\nb: c', 'a\nb', '\0', '\u010a'),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text), { maxLength: 5 }), (pairs) => {
      const head = write('GET', '/', pairs.flat()) ?? ''
      const lines = Buffer.from(head, 'latin1').toString('latin1').split('\r\n')
      expect(lines.join('')).not.toMatch(/[\r\n\0]/)
      expect(lines.length).toBeLessThanOrEqual(pairs.length + 4)
      expect(lines.slice(-2)).toEqual(['', ''])
      for (const line of lines.slice(1, -2)) expect(line).toMatch(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+: /)
    }),
  )
})

test('an unsafe method or path gives no head', () => {
  for (const path of ['', 'x', '/ ', '/\t', '/\r', '/\n', '/\0', '/\x7f', '/ü', '/\u010d\u010a'])
    expect(write('GET', path, [])).toBeNull()
  for (const method of ['', 'GET ', 'G\r\n', 'GÉT']) expect(write(method, '/', [])).toBeNull()
})

test('a worker URL determines the address and the request head', () => {
  expect(readWorkerUrl('http://[::1]:81/a/b/')).toEqual({
    origin: { key: 'http://[::1]:81', isTls: false, host: '::1', port: 81, servername: undefined },
    pathPrefix: '/a/b',
    versionlessPrefix: null,
    afterPath: ' HTTP/1.1\r\nhost: [::1]:81\r\n',
  })
  expect(readWorkerUrl('https://Worker.example')).toEqual({
    origin: {
      key: 'https://worker.example',
      isTls: true,
      host: 'worker.example',
      port: 443,
      servername: 'worker.example',
    },
    pathPrefix: '',
    versionlessPrefix: null,
    afterPath: ' HTTP/1.1\r\nhost: worker.example\r\n',
  })
  expect(readWorkerUrl('http://127.0.0.1/')?.origin.port).toBe(80)
  for (const url of ['', 'worker:80', 'grpc://h:1', '//h']) expect(readWorkerUrl(url)).toBeNull()
})

test.each([
  ['https://h/openai/v1', '/v1/chat/completions', '/openai/v1/chat/completions'],
  ['https://h/v1/', '/v1/models', '/v1/models'],
  ['https://h/v1', '/generate', '/generate'],
  ['https://h/engine/v1', '/metrics', '/engine/metrics'],
  ['https://h/v1beta/openai', '/health', '/health'],
  ['https://h/v1beta/openai', '/v1/chat/completions', '/v1beta/openai/chat/completions'],
  ['https://h/api/v3', '/v1/models', '/api/v3/models'],
  ['https://h/api', '/v1/models', '/api/v1/models'],
  ['https://h/openai', '/v1/models', '/openai/v1/models'],
  ['https://h/v1/models/llama', '/v1/models', '/v1/models/llama/v1/models'],
  ['https://h/av1', '/v1/models', '/av1/v1/models'],
  ['https://h', '/v1/models', '/v1/models'],
])('base URL %s and path %s give %s: the version appears once', (url, path, target) => {
  const read = readWorkerUrl(url)
  expect(
    read && writeRequestHead({ ...read, lines: [] }, { method: 'GET', path, headers: [], body: null }),
  ).toMatch(`GET ${target} HTTP/1.1\r\n`)
})
