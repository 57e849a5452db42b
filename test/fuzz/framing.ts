/** HTTP/1.1 requests with unusual framing, byte for byte: no request may be read as two, and none may stay unanswered. */
import { connect } from 'node:net'
import { startByteWorker } from './byte-worker.ts'
import { type FuzzCase, type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { type Draw, mutate, pickOf } from './mutate.ts'

const LANES = 16
const LIMIT_MS = 15_000
/** Silence that ends a request, incomplete ones too. */
const QUIET_MS = 300
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
const LENGTH = BODY.length
const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n'
const chunked = (size: string, end = '0\r\n\r\n') => `${size}\r\n${BODY}\r\n${end}`
const HEX = LENGTH.toString(16)

interface Variant {
  readonly name: string
  readonly headers?: readonly string[]
  /** Default: the body. */
  readonly body?: string
  /** Separates lines of the head. */
  readonly newline?: string
  readonly line?: string
}

/** Forms that servers read differently. A proxy in front may take another one of their readings. */
export const VARIANTS: readonly Variant[] = [
  { name: 'plain', headers: [`Content-Length: ${LENGTH}`] },
  { name: 'chunked', headers: ['Transfer-Encoding: chunked'], body: chunked(HEX) },
  ...['0', `${LENGTH}`, `${LENGTH + 5}`].map((length) => ({
    name: `Content-Length ${length} and chunked`,
    headers: [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'],
    body: chunked(HEX, `0\r\n\r\n${HIDDEN}`),
  })),
  {
    name: 'chunked, then Content-Length',
    headers: ['Transfer-Encoding: chunked', 'Content-Length: 4'],
    body: chunked(HEX),
  },
  { name: 'two equal Content-Length', headers: [`Content-Length: ${LENGTH}`, `Content-Length: ${LENGTH}`] },
  {
    name: 'two different Content-Length',
    headers: [`Content-Length: ${LENGTH}`, 'Content-Length: 0'],
    body: BODY + HIDDEN,
  },
  { name: 'Content-Length list', headers: [`Content-Length: ${LENGTH}, ${LENGTH}`] },
  ...[
    `+${LENGTH}`,
    `-${LENGTH}`,
    `0${LENGTH}`,
    `0x${HEX}`,
    `${LENGTH}.0`,
    `${LENGTH} `,
    `\t${LENGTH}`,
    `${LENGTH} 1`,
    `${LENGTH}a`,
    '',
    '18446744073709551616',
    '9'.repeat(30),
    '4294967296',
  ].map((value) => ({ name: `Content-Length "${value}"`, headers: [`Content-Length: ${value}`] })),
  ...[
    'Chunked',
    ' chunked',
    'chunked ',
    '\tchunked',
    '\x0bchunked',
    'xchunked',
    'chunked, chunked',
    'identity',
    'gzip, chunked',
    'chunked, gzip',
    '"chunked"',
    'chunked;q=1',
    '',
  ].map((value) => ({
    name: `Transfer-Encoding "${value}"`,
    headers: [`Transfer-Encoding:${value}`],
    body: chunked(HEX),
  })),
  {
    name: 'Transfer-Encoding twice',
    headers: ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
    body: chunked(HEX),
  },
  ...[
    'Transfer-Encoding : chunked',
    ' Transfer-Encoding: chunked',
    'Transfer_Encoding: chunked',
    'Transfer-Encoding\x00: chunked',
    'X: a\r\n Transfer-Encoding: chunked',
    'X: a\nTransfer-Encoding: chunked',
    'X: a\rTransfer-Encoding: chunked',
    'Transfer-Encoding:\r\n chunked',
  ].map((line) => ({ name: JSON.stringify(line), headers: [line, `Content-Length: ${LENGTH}`] })),
  { name: 'bare LF after lines', headers: [`Content-Length: ${LENGTH}`], newline: '\n' },
  { name: 'bare CR after lines', headers: [`Content-Length: ${LENGTH}`], newline: '\r' },
  { name: 'obs-fold', headers: ['X-A: a\r\n b', `Content-Length: ${LENGTH}`] },
  { name: 'NUL in a value', headers: ['X-A: a\0b', `Content-Length: ${LENGTH}`] },
  { name: 'blank before the colon', headers: ['X-A : a', `Content-Length: ${LENGTH}`] },
  { name: 'header without a colon', headers: ['X-A', `Content-Length: ${LENGTH}`] },
  { name: 'header without a name', headers: [': a', `Content-Length: ${LENGTH}`] },
  { name: 'name outside the token characters', headers: ['X(A): a', `Content-Length: ${LENGTH}`] },
  ...[
    `0${HEX}`,
    `${HEX};a=b`,
    `${HEX} `,
    ` ${HEX}`,
    `0x${HEX}`,
    `+${HEX}`,
    `-1`,
    HEX.toUpperCase(),
    `${HEX};${'a'.repeat(5_000)}`,
    'f'.repeat(16),
    'f'.repeat(8),
    '',
    'g',
    `${HEX}\n`,
    `${HEX};a\nb`,
  ].map((size) => ({
    name: `chunk size ${JSON.stringify(size.slice(0, 30))}`,
    headers: ['Transfer-Encoding: chunked'],
    body: chunked(size),
  })),
  {
    name: 'chunk longer than its size',
    headers: ['Transfer-Encoding: chunked'],
    body: `1\r\n${BODY}\r\n0\r\n\r\n`,
  },
  {
    name: 'bare LF in chunk framing',
    headers: ['Transfer-Encoding: chunked'],
    body: `${HEX}\n${BODY}\n0\n\n`,
  },
  { name: 'trailers', headers: ['Transfer-Encoding: chunked'], body: chunked(HEX, '0\r\nX-A: b\r\n\r\n') },
  {
    name: 'Content-Length as a trailer',
    headers: ['Transfer-Encoding: chunked'],
    body: chunked(HEX, '0\r\nContent-Length: 9\r\n\r\n'),
  },
  { name: 'huge head', headers: [`X-A: ${'a'.repeat(70_000)}`, `Content-Length: ${LENGTH}`] },
  {
    name: '200 headers',
    headers: [...Array.from({ length: 200 }, (_, nth) => `X-${nth}: a`), `Content-Length: ${LENGTH}`],
  },
  { name: 'Expect: 100-continue', headers: ['Expect: 100-continue', `Content-Length: ${LENGTH}`] },
  {
    name: 'Upgrade: h2c',
    headers: [
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAAP__',
      `Content-Length: ${LENGTH}`,
    ],
  },
  { name: 'two Host', headers: ['Host: b', `Content-Length: ${LENGTH}`] },
  ...[
    'POST  /v1/chat/completions HTTP/1.1',
    'POST\t/v1/chat/completions\tHTTP/1.1',
    '\r\nPOST /v1/chat/completions HTTP/1.1',
    'POST /v1/chat/completions HTTP/1.1 ',
    'POST /v1/chat/completions HTTP/1.0',
    'POST /v1/chat/completions HTTP/2.0',
    'POST /v1/chat/completions',
    'POST http://a/v1/chat/completions HTTP/1.1',
    'POST //v1/chat/completions HTTP/1.1',
    'POST /v1/./chat/completions HTTP/1.1',
    'POST /v1/chat/completions#a HTTP/1.1',
    'post /v1/chat/completions HTTP/1.1',
    'P(ST /v1/chat/completions HTTP/1.1',
    'POST /v1/chat/completions\0 HTTP/1.1',
    'PRI * HTTP/2.0',
  ].map((line) => ({ name: JSON.stringify(line), line, headers: [`Content-Length: ${LENGTH}`] })),
  {
    name: 'body of a GET',
    line: 'GET /v1/models HTTP/1.1',
    headers: [`Content-Length: ${HIDDEN.length}`],
    body: HIDDEN,
  },
]

export function bytesOf({
  headers = [],
  body = BODY,
  newline = '\r\n',
  line = 'POST /v1/chat/completions HTTP/1.1',
}: Variant): Buffer {
  return Buffer.from(
    `${[line, 'Host: a', 'Content-Type: application/json', ...headers].join(newline)}${newline}${newline}${body}`,
    'latin1',
  )
}

export const framing: Suite = { lanes: LANES, count: 600, start }

async function start(): Promise<Target> {
  const worker = await startByteWorker()
  const gateway = await startFuzzed({
    workers: [{ url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang' }],
  })
  return {
    gateway,
    make: makeCase,
    run: ({ label, parts }) => send(gateway.port, label, parts),
    close: () => worker.close(),
  }
}

/** The first cases are the variants as they are; then combinations with mutations and other splits into packets. */
function makeCase(draw: Draw, index: number): FuzzCase {
  const variant = VARIANTS[index] ?? pickOf(VARIANTS, draw)
  let bytes = bytesOf(variant)
  if (index < VARIANTS.length) return { label: variant.name, parts: [bytes] }
  if (draw(2) === 0) bytes = mutate(bytes, [bytesOf(pickOf(VARIANTS, draw))], draw)
  const at = draw(bytes.length + 1)
  return {
    label: `mutated ${variant.name}`,
    parts: draw(2) === 0 ? [bytes] : [bytes.subarray(0, at), bytes.subarray(at)],
  }
}

/** Half-closes once nothing more comes: then the server must close, however much of a request it has read. */
function send(port: number, label: string, parts: readonly Buffer[]): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let received = ''
  let isSilent = false
  const limit = setTimeout(() => {
    isSilent = true
    socket.destroy()
  }, LIMIT_MS)
  const quiet = setTimeout(() => socket.end(), QUIET_MS)
  const writeNext = ([part, ...rest]: readonly Buffer[]) => {
    if (part !== undefined) socket.write(part, () => setTimeout(writeNext, 5, rest))
  }
  socket.setEncoding('latin1').on('connect', () => writeNext(parts))
  socket.on('data', (text: string) => {
    received += text
    quiet.refresh()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    clearTimeout(limit)
    clearTimeout(quiet)
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
    const ending = isSilent
      ? 'silent'
      : statuses.join('+') || (socket.writableEnded ? 'unfinished' : 'closed')
    const isTwo = statuses.filter((status) => status !== '100').length > 1 && !label.startsWith('mutated')
    const fault = isSilent ? 'silent' : isTwo ? `two responses: ${received.slice(0, 600)}` : undefined
    resolve({ ending, fault })
  })
  return promise
}
