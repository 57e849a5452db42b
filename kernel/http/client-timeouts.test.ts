import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { serverParts } from '../../test/support/server-parts.ts'
import { ClientTimeouts } from './client-timeouts.ts'
import { unmatchedRoute } from './compiled-route.ts'
import type { HttpContext } from './context.ts'
import { openMemoryRequest } from './memory-request.ts'
import { MemoryResponseSink } from './memory-response-sink.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const LIMITS = { bodyIdleMs: 60_000, bodyMinRate: 1_024, replyIdleMs: 120_000 }

interface Fake {
  readonly ctx: HttpContext
  readonly events: string[]
}

/** A request whose receiver accepts no more data, so that its response is pending once it was written to. */
function open(): Fake {
  const events: string[] = []
  const receiver = { onType() {}, onData: () => false, onEnd() {}, onCut: () => void events.push('cut') }
  const sink = new MemoryResponseSink(
    receiver,
    () => {},
    () => {},
  )
  vi.spyOn(sink, 'keepOpen').mockImplementation(() => void events.push('kept'))
  const ctx = openMemoryRequest(serverParts(), unmatchedRoute(null), sink, {
    path: '/',
    query: '',
    pathValues: [],
    headers: { kept: [], forwarded: [], contentLength: -1, requestId: '', problem: null },
    requestId: 'r',
    identity: null,
    clientAddress: '',
    body: Buffer.alloc(0),
    handler: () => {},
  })
  return { ctx, events }
}

function watch(...requests: Fake[]): void {
  new ClientTimeouts(
    LIMITS,
    requests.map(({ ctx }) => ctx),
  )
}

function startWriting({ ctx }: Fake): void {
  ctx.stream(200, [])
  ctx.writeStream('x')
}

test('a request that waits for its worker has no client timeout', () => {
  const request = open()
  watch(request)
  vi.advanceTimersByTime(300_000)
  expect(request.events).toEqual([])
})

test('a stream without writes stays open', () => {
  const request = open()
  request.ctx.stream(200, [])
  watch(request)
  vi.advanceTimersByTime(300_000)
  expect(request.events).toEqual(Array(100).fill('kept'))
})

test('a body may pause for less than its timeout; then the request fails and the connection closes', () => {
  const request = open()
  const { ctx, events } = request
  ctx.isReceiving = true
  ctx.bytesIn = 1_000_000
  watch(request)
  vi.advanceTimersByTime(57_000)
  expect(new Set(events)).toEqual(new Set(['kept']))
  ctx.bytesIn++
  vi.advanceTimersByTime(60_000)
  expect(ctx.isDone).toBe(false)
  vi.advanceTimersByTime(6_000)
  expect(ctx).toMatchObject({ isDone: true, status: 408, errorCode: 'body_timeout' })
  expect(ctx.sink.closesConnection).toBe(true)
})

test('a body below the minimum rate fails the request', () => {
  const drip = open()
  const steady = open()
  for (const { ctx } of [drip, steady]) ctx.isReceiving = true
  watch(drip, steady)
  for (let i = 0; i < 30; i++) {
    drip.ctx.bytesIn += 100
    steady.ctx.bytesIn += 6_000
    vi.advanceTimersByTime(3_000)
  }
  expect(drip.ctx.errorCode).toBe('body_timeout')
  expect(steady.events.at(-1)).toBe('kept')
})

test('a client that does not read a response is disconnected after the timeout, with the error code in the log', () => {
  const request = open()
  startWriting(request)
  watch(request)
  vi.advanceTimersByTime(90_000)
  request.ctx.sink.drains++
  vi.advanceTimersByTime(117_000)
  expect(request.events).not.toContain('cut')
  vi.advanceTimersByTime(9_000)
  expect(request.events.at(-1)).toBe('cut')
  expect(request.ctx).toMatchObject({ isAborted: true, errorCode: 'reply_timeout' })
})
