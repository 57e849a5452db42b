import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HeaderList } from '../../../../kernel/contracts/transport.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { ResponseParser, type ResponseSink } from './response-parser.ts'

const MAX_HEADER_BYTES = 4096

/** Records the calls of the parser, with joined body bytes: chunking must not matter. */
class Recorder implements ResponseSink {
  status = 0
  headers: HeaderList = []
  contentLength = -2
  bodyParts: Buffer[] = []
  outcome = 'open'

  onHead(status: number, headers: HeaderList, contentLength: number): void {
    expect(this.outcome).toBe('open')
    this.status = status
    this.headers = headers
    this.contentLength = contentLength
    this.outcome = 'headed'
  }
  onBody(chunk: Buffer): void {
    expect(this.outcome).toBe('headed')
    expect(chunk.length).toBeGreaterThan(0)
    this.bodyParts.push(Buffer.from(chunk))
  }
  onEnd(isReusable: boolean): void {
    expect(this.outcome).toBe('headed')
    this.outcome = isReusable ? 'reusable' : 'ended'
  }
  onInvalid(problem: string): void {
    expect(['open', 'headed']).toContain(this.outcome)
    expect(problem).not.toBe('')
    this.outcome = 'invalid'
  }
  get body(): string {
    return Buffer.concat(this.bodyParts).toString('latin1')
  }
}

/** Parses pieces in one shared buffer that is overwritten after each push, like socket reads. */
function parse(
  bytes: Buffer,
  cuts: readonly number[] = [],
  { isHead = false, isClosedAfter = false, maxHeaderBytes = MAX_HEADER_BYTES } = {},
): Recorder {
  const recorder = new Recorder()
  const parser = new ResponseParser(maxHeaderBytes)
  const shared = Buffer.alloc(bytes.length + 16, '\n')
  parser.begin(recorder, isHead)
  const borders = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  )
  for (let i = 0; i + 1 < borders.length; i++) {
    const piece = bytes.subarray(borders[i], borders[i + 1])
    piece.copy(shared)
    parser.push(shared, piece.length)
    shared.fill('\n')
  }
  if (isClosedAfter) parser.finish()
  return recorder
}

/** Decodes header bytes: valid UTF-8 as UTF-8. */
function textOf(bytes: string): string {
  const buffer = Buffer.from(bytes, 'latin1')
  return isUtf8(buffer) ? buffer.toString('utf8') : bytes
}

const parseText = (text: string, options = {}) => parse(Buffer.from(text, 'latin1'), [], options)
const everyByte = (bytes: Buffer) => Array.from({ length: bytes.length }, (_, index) => index)

const token = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$/)
const headerName = fc.oneof(
  fc.constantFrom('Content-Type', 'DATE', 'server', 'X-Request-Id', 'set-cookie'),
  token.map((name) => `x-${name}`),
)
const headerValue = fc.stringMatching(
  /^([\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]{0,30}[\x21-\x7e\x80-\xff])?)?$/,
)
const headerPairs = fc.array(fc.tuple(headerName, headerValue), { maxLength: 6 })
const padding = fc.constantFrom('', ' ', '\t', '  ')
const payload = fc.uint8Array({ minLength: 0, maxLength: 300 }).map((bytes) => Buffer.from(bytes))
const extension = fc.constantFrom('', ';a', ';a=b', ' ;x="quoted ; text"', ';\t')
const interim = fc.constantFrom(
  '',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n',
)

interface Scenario {
  readonly bytes: Buffer
  readonly status: number
  readonly headers: string[]
  readonly body: string
  readonly contentLength: number
  readonly outcome: string
  readonly isHead: boolean
}

const framing = fc.constantFrom('sized', 'chunked', 'until-close', 'head', 'no-body')

/** Any valid response, and the expected result. */
const scenario: fc.Arbitrary<Scenario> = fc
  .record({
    framing,
    interim,
    status: fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
    bodyless: fc.constantFrom(204, 304),
    reason: fc.constantFrom('', ' ', ' OK', ' Not \xff Found'),
    pairs: headerPairs,
    pad: padding,
    pieces: fc.array(payload, { maxLength: 5 }),
    extension,
    trailers: headerPairs,
    isClosing: fc.boolean(),
    isUpper: fc.boolean(),
    leftover: fc.constantFrom('', '', '', 'HTTP/1.1 200 OK\r\n\r\n', 'x'),
  })
  .map((c) => {
    const headers = c.pairs.flatMap(([name, value]) => [name.toLowerCase(), textOf(value)])
    const lines = c.pairs.map(([name, value]) => `${name}:${c.pad}${value}${c.pad}\r\n`)
    const add = (name: string, value: string) => {
      headers.push(name, value)
      lines.push(`${c.isUpper ? name.toUpperCase() : name}: ${value}\r\n`)
    }
    if (c.isClosing) add('connection', c.isUpper ? 'Keep-Alive, Close' : 'close')
    let body = Buffer.concat(c.pieces)
    let contentLength = -1
    let wireBody = body
    let status = c.status
    if (c.framing === 'sized') {
      contentLength = body.length
      add('content-length', String(body.length))
    } else if (c.framing === 'chunked') {
      add('transfer-encoding', 'chunked')
      const chunks = c.pieces
        .filter((piece) => piece.length > 0)
        .flatMap((piece) => {
          const size = piece.length.toString(16)
          const line = `${c.isUpper ? `0${size.toUpperCase()}` : size}${c.extension}\r\n`
          return [Buffer.from(line, 'latin1'), piece, Buffer.from('\r\n')]
        })
      const trailers = c.trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      wireBody = Buffer.concat([...chunks, Buffer.from(`0${c.extension}\r\n${trailers}\r\n`, 'latin1')])
    } else if (c.framing === 'head' || c.framing === 'no-body') {
      if (c.framing === 'no-body') status = c.bodyless
      add('content-length', '321')
      body = Buffer.alloc(0)
      wireBody = body
      contentLength = 0
    }
    const leftover = c.framing === 'until-close' ? '' : c.leftover
    const isReusable = !c.isClosing && leftover === '' && c.framing !== 'until-close'
    const head = `${c.interim}HTTP/1.1 ${status}${c.reason}\r\n${lines.join('')}\r\n`
    return {
      bytes: Buffer.concat([Buffer.from(head, 'latin1'), wireBody, Buffer.from(leftover)]),
      status,
      headers,
      body: body.toString('latin1'),
      contentLength,
      outcome: isReusable ? 'reusable' : 'ended',
      isHead: c.framing === 'head',
    }
  })

test('header bytes beyond ASCII are decoded as UTF-8 if valid, and as Latin-1 otherwise', () => {
  const text = 'grün ✓ 日本 \u{1f600}'
  const { headers } = parse(
    Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\nx-utf8: ${text}\r\nx-latin1: gr`),
      Buffer.from('\xfcn \xc3', 'latin1'),
      Buffer.from('\r\ncontent-length: 0\r\n\r\n'),
    ]),
  )
  expect(headers).toEqual(['x-utf8', text, 'x-latin1', 'grün Ã', 'content-length', '0'])
})

describe('valid responses', () => {
  test('any valid response split anywhere gives the same head, body and end', () => {
    fc.assert(
      fc.property(scenario, fc.array(fc.nat(5000), { maxLength: 12 }), fc.boolean(), (s, cuts, isDripped) => {
        const recorder = parse(s.bytes, isDripped ? everyByte(s.bytes) : cuts, {
          isHead: s.isHead,
          isClosedAfter: true,
        })
        expect(recorder.status).toBe(s.status)
        expect(recorder.headers).toEqual(s.headers)
        expect(recorder.contentLength).toBe(s.contentLength)
        expect(recorder.body).toBe(s.body)
        // Left-over bytes in a later read reach an idle connection, which is then closed.
        if (s.outcome === 'reusable') expect(recorder.outcome).toBe('reusable')
        else expect(['ended', 'reusable']).toContain(recorder.outcome)
        if (cuts.length === 0 && !isDripped) expect(recorder.outcome).toBe(s.outcome)
      }),
      { numRuns: runs(1500) },
    )
  })

  test('payloads of several chunks in one read are passed on as one', () => {
    const recorder = parseText(
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n3;x\r\none\r\n2\r\n\n\n\r\n0\r\n\r\n',
    )
    expect(recorder.bodyParts.map(String)).toEqual(['data: one\n\n'])
    expect(recorder.outcome).toBe('reusable')
  })

  test('one chunk per read is passed on without a copy', () => {
    const parser = new ResponseParser(MAX_HEADER_BYTES)
    const read = Buffer.from('5\r\nhello\r\n')
    const seen: Buffer[] = []
    const recorder = new Recorder()
    recorder.onBody = (chunk) => void seen.push(chunk)
    parser.begin(recorder, false)
    const head = Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    parser.push(head, head.length)
    parser.push(read, read.length)
    expect(seen).toHaveLength(1)
    expect(seen[0].buffer).toBe(read.buffer)
    expect(seen[0].byteOffset).toBe(read.byteOffset + 3)
  })

  test('HTTP/1.0 responses are complete but their connection is not reused', () => {
    const recorder = parseText('HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok')
    expect([recorder.body, recorder.outcome]).toEqual(['ok', 'ended'])
  })

  test('a repeated equal content-length counts once', () => {
    const recorder = parseText('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok')
    expect(recorder.headers).toEqual(['content-length', '2'])
    expect(recorder.outcome).toBe('reusable')
  })

  test('names of common headers are lower-cased from any case', () => {
    const names = [
      'Alt-Svc',
      'Via',
      'VARY',
      'Etag',
      'Date',
      'sErver',
      'pragma',
      'X-Request-ID',
      'dats',
      'x-request-ib',
    ]
    const recorder = parseText(
      `HTTP/1.1 200 OK\r\n${names.map((name) => `${name}: 1\r\n`).join('')}content-length: 0\r\n\r\n`,
    )
    const seen = recorder.headers.filter((_, index) => index % 2 === 0)
    expect(seen).toEqual([...names.map((name) => name.toLowerCase()), 'content-length'])
  })

  test('a body without length is incomplete until the connection ends', () => {
    const text = 'HTTP/1.1 200 OK\r\n\r\nbody'
    expect(parseText(text).outcome).toBe('headed')
    const whole = parseText(text, { isClosedAfter: true })
    expect([whole.body, whole.contentLength, whole.outcome]).toEqual(['body', -1, 'ended'])
  })

  test('a sized or chunked body truncated by the end of the connection does not end', () => {
    const sized = 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody'
    const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n'
    expect(parseText(sized, { isClosedAfter: true }).outcome).toBe('headed')
    expect(parseText(chunked, { isClosedAfter: true }).outcome).toBe('headed')
  })
})

describe('invalid responses', () => {
  const head = (lines: string) => `HTTP/1.1 200 OK\r\n${lines}\r\n`
  const chunked = (body: string) => `${head('transfer-encoding: chunked\r\n')}${body}`
  const cases: Record<string, string> = {
    'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n',
    'HTTP/2': 'HTTP/2.0 200 OK\r\n\r\n',
    'HTTP/1.2': 'HTTP/1.2 200 OK\r\n\r\n',
    'HTTP/0.9': 'HTTP/0.9 200 OK\r\n\r\n',
    'an empty line before the status line': '\r\nHTTP/1.1 200 OK\r\n\r\n',
    'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
    'a status of four digits': 'HTTP/1.1 2000 OK\r\n\r\n',
    'a status under 100': 'HTTP/1.1 099 OK\r\n\r\n',
    'a status over 599': 'HTTP/1.1 600 OK\r\n\r\n',
    'a status line with bare LF': 'HTTP/1.1 200 OK\n\r\n',
    'a switch of protocols': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
    'a NUL in a value': head('a: b\0c\r\n'),
    'a bare CR in a value': head('a: b\rc\r\n'),
    'a bare LF after a value': head('a: b\nc: d\r\n'),
    'a folded line': head('a: b\r\n c\r\n'),
    'a space before the colon': head('a : b\r\n'),
    'a header without a colon': head('abc\r\n'),
    'an empty name': head(': b\r\n'),
    'conflicting content-length': head('content-length: 1\r\nContent-Length: 2\r\n'),
    'a list of content-lengths': head('content-length: 1, 1\r\n'),
    'a signed content-length': head('content-length: +1\r\n'),
    'an empty content-length': head('content-length:\r\n'),
    'a hexadecimal content-length': head('content-length: 0x1\r\n'),
    'a giant content-length': head('content-length: 9999999999999999\r\n'),
    'content-length, then transfer-encoding': head('content-length: 1\r\ntransfer-encoding: chunked\r\n'),
    'transfer-encoding, then content-length': head('transfer-encoding: chunked\r\ncontent-length: 1\r\n'),
    'transfer-encoding xchunked': head('transfer-encoding: xchunked\r\n'),
    'transfer-encoding gzip, chunked': head('transfer-encoding: gzip, chunked\r\n'),
    'transfer-encoding identity': head('transfer-encoding: identity\r\n'),
    'chunked twice': head('transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n'),
    'chunked in HTTP/1.0': 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    'a chunk without a size': chunked('\r\nabc\r\n'),
    'a chunk size that is no number': chunked('xyz\r\n'),
    'a signed chunk size': chunked('-1\r\n'),
    'a chunk size with prefix': chunked('0x1\r\na\r\n'),
    'a chunk size with a space': chunked('1 \r\na\r\n'),
    'a chunk size that overflows': chunked('fffffffffffffffff\r\n'),
    'a chunk size ended by bare LF': chunked('1\na\r\n'),
    'chunk data longer than its size': chunked('1\r\nabc\r\n'),
    'chunk data ended by bare LF': chunked('1\r\na\n0\r\n\r\n'),
    'a NUL in a chunk extension': chunked('1;a\0\r\na\r\n'),
    'a bad trailer': chunked('0\r\nno colon\r\n\r\n'),
    'a head over the limit': head(`a: ${'x'.repeat(MAX_HEADER_BYTES)}\r\n`),
    'many short headers over the limit': head('a: b\r\n'.repeat(MAX_HEADER_BYTES / 6)),
    'endless interim responses': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(MAX_HEADER_BYTES / 20),
    'trailers over the limit': chunked(`0\r\n${'a: b\r\n'.repeat(MAX_HEADER_BYTES / 5)}\r\n`),
    'a chunk extension over the limit': chunked(`1;${'x'.repeat(MAX_HEADER_BYTES)}\r\na\r\n`),
  }

  test.each(Object.entries(cases))('%s is rejected, at once and byte by byte', (_, text) => {
    const bytes = Buffer.from(text, 'latin1')
    expect(parse(bytes).outcome).toBe('invalid')
    expect(parse(bytes, everyByte(bytes)).outcome).toBe('invalid')
  })

  test('data before the invalid bytes is passed on first', () => {
    const recorder = parseText(chunked('3\r\nabc\r\nzzz'))
    expect([recorder.body, recorder.outcome]).toEqual(['abc', 'invalid'])
  })

  test('a corrupted response never throws, and ends the same way for any split', () => {
    fc.assert(
      fc.property(scenario, fc.nat(5000), fc.nat(255), fc.boolean(), (s, place, byte, isHead) => {
        const bytes = Buffer.from(s.bytes)
        bytes[place % bytes.length] = byte
        const whole = parse(bytes, [], { isHead, isClosedAfter: true })
        const dripped = parse(bytes, everyByte(bytes), { isHead, isClosedAfter: true })
        expect(dripped.status).toBe(whole.status)
        expect(dripped.body).toBe(whole.body)
        const normal = (outcome: string) => (outcome === 'reusable' ? 'ended' : outcome)
        expect(normal(dripped.outcome)).toBe(normal(whole.outcome))
      }),
      { numRuns: runs(1500) },
    )
  })

  test('random bytes never throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const recorder = parse(Buffer.from(bytes), [], { isClosedAfter: true })
        expect(['open', 'invalid']).toContain(recorder.outcome)
      }),
    )
  })
})

describe('reentrant calls', () => {
  const bytes = Buffer.from(
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n',
  )

  test('stop in the head or body callback prevents later callbacks', () => {
    for (const place of ['onHead', 'onBody'] as const) {
      const parser = new ResponseParser(MAX_HEADER_BYTES)
      const calls: string[] = []
      const note = (name: string) => () => {
        calls.push(name)
        if (name === place) parser.stop()
      }
      parser.begin(
        {
          onHead: note('onHead'),
          onBody: note('onBody'),
          onEnd: note('onEnd'),
          onInvalid: note('onInvalid'),
        },
        false,
      )
      parser.push(Buffer.from(bytes), bytes.length)
      expect(calls.at(-1)).toBe(place)
    }
  })

  test('the next response may be started from the end callback of the last', () => {
    const parser = new ResponseParser(MAX_HEADER_BYTES)
    const first = new Recorder()
    const second = new Recorder()
    first.onEnd = () => parser.begin(second, false)
    parser.begin(first, false)
    parser.push(Buffer.from(bytes), bytes.length)
    parser.push(Buffer.from(bytes), bytes.length)
    expect([first.body, second.body, second.outcome]).toEqual(['ab', 'ab', 'reusable'])
  })

  test('a connection with many responses parses each like a new connection', () => {
    const lines = ['date: a', 'date: b', 'Server: x', 'server: x ', 'content-length: 2', 'content-length: 2x']
    const headers = fc.array(fc.constantFrom(...lines, `long: ${'v'.repeat(200)}`, 'é: x', 'c: é'), {
      maxLength: 5,
    })
    fc.assert(
      fc.property(fc.array(headers, { minLength: 2, maxLength: 8 }), (responses) => {
        const parser = new ResponseParser(MAX_HEADER_BYTES)
        for (const one of responses) {
          const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${one.map((line) => `${line}\r\n`).join('')}\r\nok`)
          const recorder = new Recorder()
          parser.begin(recorder, false)
          parser.push(Buffer.from(bytes), bytes.length)
          parser.finish()
          const alone = parse(bytes, [], { isClosedAfter: true })
          expect([recorder.headers, recorder.body, recorder.outcome]).toEqual([
            alone.headers,
            alone.body,
            alone.outcome,
          ])
        }
      }),
    )
  })
})
