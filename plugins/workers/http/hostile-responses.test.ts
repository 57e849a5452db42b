/** Workers that send malformed or endless responses: every call ends within its limits, and the next one works. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DescribeTools, UpstreamFailure, type WorkerCall, type WorkerResponse } from '#kernel'
import { readLoadReport } from '#shared'
import { CONTROL_POOL, callWorker } from './control-call.ts'
import { discover } from './discover-models.ts'
import { engineOf } from './engines/index.ts'
import { HttpTransport } from './http-transport.ts'
import { readGauges } from './load-reports.ts'
import { WorkerQueries } from './worker-queries.ts'

const MAX_BODY_BYTES = 65_536
/** What socket buffers may hold beyond the limits, bytes. */
const SLACK_BYTES = 8 * 1024 * 1024
const OK_BODY = '{"fine":true}'
const OK = `HTTP/1.1 200 OK\r\ncontent-length: ${OK_BODY.length}\r\n\r\n${OK_BODY}`

/** A response of a worker: bytes, then a piece that is repeated until the gateway closes the connection. */
interface Script {
  readonly start: string
  readonly repeat: string | null
  readonly closes: boolean
}

const transport = new HttpTransport(CONTROL_POOL)
let server: Server
let script: Script = { start: OK, repeat: null, closes: false }
let sentBytes = 0

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => play(socket, script))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  transport.close()
  server.close()
})

function play(socket: Socket, { start, repeat, closes }: Script): void {
  sentBytes = start.length
  socket.write(start, 'latin1')
  if (closes) socket.end()
  if (repeat === null) return
  const piece = Buffer.from(repeat.repeat(Math.ceil(65_536 / repeat.length)), 'latin1')
  const more = () => {
    while (!socket.destroyed) {
      sentBytes += piece.length
      if (!socket.write(piece)) return
    }
  }
  socket.on('drain', more)
  more()
}

const call = (): Promise<WorkerResponse> => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const limits = { timeoutMs: 2_000, maxBodyBytes: MAX_BODY_BYTES }
  return callWorker(transport, { url, apiKey: null }, { method: 'GET', path: '/x', ...limits })
}

const head = (lines: string) => `HTTP/1.1 200 OK\r\n${lines}\r\n`
const token = fc.stringMatching(/^[a-z-]{1,12}$/)
const text = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 40 })

const endless: fc.Arbitrary<Script> = fc
  .oneof(
    token.map((name) => ({ start: 'HTTP/1.1 200 OK\r\n', repeat: `x-${name}: 1\r\n` })),
    token.map((name) => ({ start: `HTTP/1.1 200 OK\r\nx-${name}: `, repeat: 'a' })),
    fc.constant({ start: 'HTTP/1.1 200 ', repeat: 'OK' }),
    fc.constant({ start: '', repeat: 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n' }),
    fc.constant({ start: head('transfer-encoding: chunked\r\n'), repeat: '5\r\nhello\r\n' }),
    fc.constant({ start: `${head('transfer-encoding: chunked\r\n')}1;`, repeat: 'x' }),
    fc.constant({ start: `${head('transfer-encoding: chunked\r\n')}0\r\n`, repeat: 'x-trailer: 1\r\n' }),
    fc.constant({ start: head('transfer-encoding: chunked\r\n'), repeat: '0000000000' }),
    fc.constant({ start: head(''), repeat: 'data: x' }),
    fc.constant({ start: head('content-length: 999999999999999\r\n'), repeat: '[' }),
    fc.constant({ start: head('content-type: text/event-stream\r\n'), repeat: 'data' }),
  )
  .map((parts) => ({ ...parts, closes: false }))

const malformed: fc.Arbitrary<Script> = fc
  .oneof(
    text,
    text.map((line) => head(`${line}\r\n`)),
    text.map((size) => `${head('transfer-encoding: chunked\r\n')}${size}\r\nabc\r\n`),
    fc
      .constantFrom('fffffffffffffffff', '-1', '0x5')
      .map((n) => `${head('transfer-encoding: chunked\r\n')}${n}\r\nabc`),
    fc.integer({ min: 4, max: 1_000 }).map((length) => `${head(`content-length: ${length}\r\n`)}abc`),
    fc.constant(`${head('content-length: 1\r\ncontent-length: 2\r\n')}abc`),
  )
  .map((start) => ({ start, repeat: null, closes: true }))

async function expectNextCallWorks(): Promise<void> {
  script = { start: OK, repeat: null, closes: false }
  expect((await call()).json()).toEqual({ fine: true })
}

test('endless heads, lines, chunks and bodies end at their limit', async () => {
  await fc.assert(
    fc.asyncProperty(endless, async (endlessScript) => {
      script = endlessScript
      await expect(call()).rejects.toMatchObject({ kind: 'protocol' })
      expect(sentBytes).toBeLessThan(CONTROL_POOL.maxResponseHeaderBytes + MAX_BODY_BYTES + SLACK_BYTES)
      await expectNextCallWorks()
    }),
    { numRuns: 40 },
  )
})

test('malformed and truncated responses fail the call, and the next one works', async () => {
  await fc.assert(
    fc.asyncProperty(malformed, async (malformedScript) => {
      script = malformedScript
      const outcome = await call().catch((error: unknown) => error)
      if (outcome instanceof UpstreamFailure) expect(['protocol', 'reset']).toContain(outcome.kind)
      else expect((outcome as WorkerResponse).body.length).toBeLessThanOrEqual(MAX_BODY_BYTES)
      await expectNextCallWorks()
    }),
    { numRuns: 60 },
  )
})

test('bytes after the announced length do not become the next response', async () => {
  const forged = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged'
  script = { start: `${OK}${forged}`, repeat: null, closes: false }
  expect((await call()).json()).toEqual({ fine: true })
  await expectNextCallWorks()
})

describe('content', () => {
  const TOOLS: Pick<DescribeTools, 'note' | 'signal' | 'wait'> = {
    note() {},
    signal: new AbortController().signal,
    wait: async () => {},
  }
  const queries = (body: Buffer) => {
    script = {
      start: `${head(`content-length: ${body.length}\r\n`)}${body.toString('latin1')}`,
      repeat: null,
      closes: false,
    }
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const send = (target: { url: string; apiKey: string | null }, options: WorkerCall) =>
      callWorker(transport, target, options)
    return new WorkerQueries(send, { url, apiKey: null }, TOOLS, null)
  }

  test.each([
    ['a million nested arrays', Buffer.from('['.repeat(1_000_000))],
    ['a million nested objects', Buffer.from('{"a":'.repeat(500_000))],
    ['a million empty objects', Buffer.from(`{"data":[${'{},'.repeat(1_000_000)}{}]}`)],
    ['gzip that was not requested', gzipSync('{"data":[]}')],
  ])('%s are not read as worker information', async (_, body) => {
    expect(await queries(body).find('/v1/models')).toBeNull()
  })

  const key = fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'data',
    'id',
    'version',
    'loads',
    'dp_rank',
  )
  const value = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, -1, 1e308, '', 'x', '__proto__'),
      fc.array(tie('json'), { maxLength: 4 }),
      fc
        .array(fc.tuple(key, tie('json')), { maxLength: 4 })
        .map(
          (entries) =>
            JSON.parse(`{${entries.map(([k, v]) => `"${k}":${JSON.stringify(v)}`).join(',')}}`) as unknown,
        ),
    ),
  })).json

  test('any JSON becomes labels and models of the expected types, and changes no prototype', async () => {
    const before = Object.getOwnPropertyNames(Object.prototype)
    await fc.assert(
      fc.asyncProperty(value, async (json) => {
        const body = Buffer.from(JSON.stringify(json) ?? 'null')
        const { labels, models } = await discover(
          queries(body),
          { engine: engineOf('vllm'), apis: ['chat'] },
          {},
          null,
        )
        for (const label of Object.values(labels)) expect(typeof label).toBe('string')
        for (const { id } of models) expect(typeof id).toBe('string')
        for (const { rank } of readLoadReport(json)?.ranks ?? []) expect(Number.isInteger(rank)).toBe(true)
      }),
      { numRuns: 60 },
    )
    const unprintable = { toString: 1, valueOf: 1 }
    const entry = { id: 'm', max_model_len: unprintable, created: unprintable }
    const body = Buffer.from(JSON.stringify({ data: [entry] }))
    const { models } = await discover(queries(body), { engine: engineOf('vllm'), apis: ['chat'] }, {}, null)
    expect(models.map(({ id }) => id)).toEqual(['m'])
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
    expect(readGauges('__proto__ 1\nconstructor 2\n')).toBeNull()
  })
})
