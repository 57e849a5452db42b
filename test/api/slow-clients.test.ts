/** Slow clients, and clients whose bodies are rejected during the upload. Real sockets. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiErrorFormat } from '#kernel'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'

const LONG = Buffer.alloc(24 * 1_048_576, 'x')
/** Longer than the timeouts of the server library. */
const PAUSE_MS = 13_000

const routes = plugin('slow-clients', (host) => {
  const base = {
    access: 'public',
    errors: apiErrorFormat,
    docs: { summary: 's', tag: 't', responses: {} },
  } as const
  host.route({
    ...base,
    method: 'POST',
    path: '/echo',
    handler: (ctx) => ctx.text(200, String(ctx.bodyBytes.length)),
  })
  host.route({
    ...base,
    method: 'GET',
    path: '/silent',
    handler: (ctx) => {
      const events = ctx.sse()
      events.write('data: first\n\n')
      setTimeout(() => events.end('data: last\n\n'), PAUSE_MS)
    },
  })
  host.route({ ...base, method: 'GET', path: '/long', handler: (ctx) => ctx.send(200, 'text/plain', LONG) })
})

let gateway: TestGateway
beforeAll(async () => {
  const http = { maxBodyBytes: 1_000_000, heartbeatMs: 0 }
  gateway = await startGateway({ own: [routes], plugins: {}, kernel: { http } })
})
afterAll(() => gateway.stop())

/** Sends the parts with a pause between them, and reads after the pause too. @returns bytes received and the first line */
function slowly(parts: readonly string[]): Promise<{ bytes: number; head: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(gateway.port, '127.0.0.1')
    let bytes = 0
    let head = ''
    socket.on('error', reject)
    socket.on('data', (data) => {
      if (bytes === 0) head = data.toString('latin1').split('\r\n')[0]
      bytes += data.length
    })
    socket.on('close', () => resolve({ bytes, head }))
    socket.write(parts[0])
    socket.pause()
    setTimeout(() => {
      if (parts[1] !== undefined) socket.write(parts[1])
      socket.resume()
      socket.setTimeout(3_000, () => socket.end())
    }, PAUSE_MS)
  })
}

// The slow clients are slow at the same time.
test.concurrent('a client may pause during its upload, and before it reads, for longer than the server library allows', async () => {
  const [upload, reader] = await Promise.all([
    slowly(['POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345', '67890']),
    slowly(['GET /long HTTP/1.1\r\nHost: a\r\n\r\n']),
  ])
  expect(upload.head).toBe('HTTP/1.1 200 OK')
  expect(reader.bytes).toBeGreaterThan(LONG.length)
})

test.concurrent('a stream may be silent for longer than the server library allows, without a heartbeat', async () => {
  const reply = await fetch(`${gateway.url}/silent`)
  expect(await reply.text()).toBe('data: first\n\ndata: last\n\n')
})

test.concurrent.each([
  ['stops in it', false],
  ['drips on', true],
])('a refused body is not waited for without an end: a client that %s reads 413', async (_how, drips) => {
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(`POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${LONG.length}\r\n\r\n`)
  socket.write(LONG.subarray(0, 2_000_000))
  const drip = setInterval(() => drips && socket.writable && socket.write('x'.repeat(1_000)), 50)
  try {
    const [data] = await once(socket, 'data', { signal: AbortSignal.timeout(30_000) })
    expect(String(data)).toMatch(/^HTTP\/1\.1 413 /)
  } finally {
    clearInterval(drip)
    socket.destroy()
  }
})

test.each([
  ['announced', { body: Buffer.alloc(20_000_000, 'x') }],
  ['not announced', { body: new Blob([Buffer.alloc(20_000_000, 'x')]).stream(), duplex: 'half' }],
])('a client whose long body is refused reads 413, also when its length is %s', async (_how, init) => {
  for (let i = 0; i < 5; i++) {
    const body =
      init.body instanceof ReadableStream ? new Blob([Buffer.alloc(20_000_000, 'x')]).stream() : init.body
    const reply = await fetch(`${gateway.url}/echo`, { method: 'POST', ...init, body } as RequestInit)
    expect(reply.status).toBe(413)
    expect(await reply.json()).toMatchObject({ error: { code: 'payload_too_large' } })
  }
})

test('a client that reads only after sending its long body reads 413 too', async () => {
  const socket = connect(gateway.port, '127.0.0.1').pause()
  socket.write(`POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${LONG.length}\r\n\r\n`)
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.write(LONG, () => resolve())
  })
  expect((await socket.toArray()).join('')).toMatch(/^HTTP\/1\.1 413 /)
})

test('a compressed body is rejected with 415 and accept-encoding', async () => {
  const reply = await fetch(`${gateway.url}/echo`, {
    method: 'POST',
    headers: { 'content-encoding': 'gzip' },
    body: Buffer.alloc(500_000),
  })
  expect(reply.status).toBe(415)
  expect(reply.headers.get('accept-encoding')).toBe('identity')
  expect(await reply.json()).toMatchObject({ error: { code: 'unsupported_content_encoding' } })
})

test('responses do not name the server library', async () => {
  const reply = await fetch(`${gateway.url}/echo`, { method: 'POST', body: 'x' })
  expect([...reply.headers.keys()].filter((name) => name.includes('websocket'))).toEqual([])
})

test('a client that is too slow receives 408 if it can read it, and the timeout is counted', async () => {
  const strict = await startGateway({
    own: [routes],
    plugins: { metrics: {} },
    kernel: { http: { bodyIdleMs: 1_000, replyIdleMs: 1_000 } },
  })
  const uploading = connect(strict.port, '127.0.0.1')
  const reading = connect(strict.port, '127.0.0.1')
  reading.on('error', () => {}).pause()
  try {
    reading.write('GET /long HTTP/1.1\r\nHost: a\r\n\r\n')
    uploading.write('POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345')
    const response = (await uploading.toArray()).join('')
    expect(response).toMatch(/^HTTP\/1\.1 408 /)
    expect(response).toContain('"code":"body_timeout"')
    const counted = async () => {
      const text = await (await fetch(strict.metricsUrl ?? '')).text()
      return [...text.matchAll(/^weir_http_responses_total\{.*error_code="(\w+_timeout)".*\} (\d+)$/gm)]
        .map(([, code, count]) => `${code} ${count}`)
        .sort()
    }
    await expect.poll(counted).toEqual(['body_timeout 1', 'reply_timeout 1'])
  } finally {
    uploading.destroy()
    reading.destroy()
    await strict.stop()
  }
})
