/** Responses of tool servers in chunks of any size. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type HttpPeer, UpstreamFailure, type UpstreamHandler } from '#kernel'
import { type Post, PostClient } from './post-client.ts'
import { readRpcEvent } from './rpc-event.ts'

/** A peer driven by the test, request by request. */
function openPostClient(maxResponseBytes = 100_000) {
  const asked: UpstreamHandler[] = []
  const given: UpstreamHandler[] = []
  const floods: string[] = []
  const peer: HttpPeer = {
    send: (_request, _limits, handler) => {
      asked.push(handler)
      return { pause() {}, resume() {}, abort: () => void given.push(handler) }
    },
    close() {},
  }
  const limits = { connectMs: 1, headMs: 0, firstTokenMs: 0, idleMs: 0, requestMs: 1 }
  const onFlood = (error: Error) => void floods.push(error.message)
  return {
    client: new PostClient({ peer, path: '/mcp', limits, maxResponseBytes, onFlood }),
    asked,
    given,
    floods,
  }
}

function listen() {
  const received: unknown[] = []
  return {
    received,
    onText: (text: string) => void received.push(text),
    onEnd: (place: unknown) => void received.push({ end: place }),
    onOther: (status: number, _headers: unknown, body: Buffer) =>
      void received.push({ status, body: `${body}` }),
    onError: (error: Error) => void received.push({ error: error.message }),
  }
}

/** Splits bytes at the given places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...new Set([...places.map((place) => place % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  )
  return ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end))
}

const anyCuts = fc.array(fc.nat(), { maxLength: 12 })
const anyText = fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => JSON.stringify(text))

test('a body is one text, for any chunks', () => {
  fc.assert(
    fc.property(anyText, anyCuts, fc.boolean(), (text, cuts, isAnnounced) => {
      const { client, asked } = openPostClient()
      const listener = listen()
      client.post([], Buffer.from(''), listener)
      const bytes = Buffer.from(text)
      const type = 'application/json; charset=utf-8'
      asked[0].onResponseStart(200, ['content-type', type], isAnnounced ? bytes.length : -1)
      for (const part of cut(bytes, cuts)) asked[0].onResponseData(part)
      asked[0].onResponseEnd()
      expect(listener.received).toEqual([text, { end: null }])
    }),
  )
})

test('each event is one text, for any chunks and line ends, and the last id is returned for resumption', () => {
  const anyEvents = fc.array(fc.tuple(anyText, fc.option(fc.nat(99))), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(anyEvents, anyCuts, fc.constantFrom('\n', '\r\n'), (events, cuts, line) => {
      const { client, asked } = openPostClient()
      const listener = listen()
      client.post([], Buffer.from(''), listener)
      const bytes = Buffer.from(
        events.map(([t, id]) => `${id === null ? '' : `id: ${id}${line}`}data: ${t}${line}${line}`).join(''),
      )
      asked[0].onResponseStart(200, ['content-type', 'text/event-stream'], -1)
      for (const part of cut(bytes, cuts)) asked[0].onResponseData(part)
      asked[0].onResponseEnd()
      const ids = events.flatMap(([, id]) => (id === null ? [] : [id]))
      const last = ids.length === 0 ? null : { lastId: String(ids.at(-1)), retryMs: null }
      expect(listener.received).toEqual([...events.map(([t]) => t), { end: last }])
    }),
  )
})

test('a broken response is an error, unless its stream can be resumed', () => {
  for (const [text, expected] of [
    ['data: x\n\n', ['x', { error: 'gone' }]],
    ['id: 4\nretry: 20\ndata: x\n\n', ['x', { end: { lastId: '4', retryMs: 20 } }]],
  ] as const) {
    const { client, asked } = openPostClient()
    const listener = listen()
    client.post([], Buffer.from(''), listener)
    asked[0].onResponseStart(200, ['content-type', 'text/event-stream'], -1)
    asked[0].onResponseData(Buffer.from(text))
    asked[0].onResponseError(new UpstreamFailure('reset', 'gone', true))
    expect(listener.received).toEqual(expected)
  }
})

test('a response of another status or type is passed on completely', () => {
  const { client, asked } = openPostClient()
  const listener = listen()
  for (let i = 0; i < 2; i++) client.post([], Buffer.from(''), listener)
  asked[0].onResponseStart(401, ['content-type', 'application/json'], 2)
  asked[0].onResponseData(Buffer.from('{}'))
  asked[0].onResponseEnd()
  asked[1].onResponseStart(200, ['content-type', 'text/html'], -1)
  asked[1].onResponseEnd()
  expect(listener.received).toEqual([
    { status: 401, body: '{}' },
    { status: 200, body: '' },
  ])
})

test('a response above the limit is truncated, and onFlood is called', async () => {
  const { client, asked, given, floods } = openPostClient(10)
  const listener = listen()
  client.post([], Buffer.from(''), listener)
  asked[0].onResponseStart(200, ['content-type', 'application/json'], -1)
  asked[0].onResponseData(Buffer.alloc(11))
  asked[0].onResponseData(Buffer.alloc(11))
  await new Promise(setImmediate)
  const error = 'the server sent more than 10 bytes'
  expect([listener.received, given.length, floods]).toEqual([[{ error }], 1, [error]])
})

test('concurrent requests are limited, further ones are queued; an aborted queued one is never sent', () => {
  const { client, asked, given } = openPostClient()
  const listener = listen()
  const posts: Post[] = Array.from({ length: 40 }, () => client.post([], Buffer.from(''), listener))
  expect(asked).toHaveLength(32)
  posts[39].abort()
  posts[0].abort()
  posts[0].abort()
  expect([asked.length, given.length]).toEqual([33, 1])
  for (let i = 1; i < asked.length; i++) {
    asked[i].onResponseStart(200, ['content-type', 'application/json'], 2)
    asked[i].onResponseData(Buffer.from('{}'))
    asked[i].onResponseEnd()
  }
  expect([asked.length, given.length]).toEqual([39, 1])
  expect(listener.received.filter((one) => one === '{}')).toHaveLength(38)
})

test.each([
  ['data: {"a":1}\n\n', { id: null, retryMs: null, data: '{"a":1}' }],
  ['event: message\r\ndata:x\r\n\r\n', { id: null, retryMs: null, data: 'x' }],
  ['event: ping\ndata: x\n\n', { id: null, retryMs: null, data: null }],
  ['data: a\ndata: b\n\n', { id: null, retryMs: null, data: 'a\nb' }],
  ['id: 7\nretry: 500\n\n', { id: '7', retryMs: 500, data: null }],
  ['id: 7\nretry: soon\ndata:\n\n', { id: '7', retryMs: null, data: '' }],
  ['retry: 999999999\n\n', { id: null, retryMs: 600_000, data: null }],
  [`id: ${'x'.repeat(5_000)}\n\n`, { id: null, retryMs: null, data: null }],
  [': a comment\n\n', { id: null, retryMs: null, data: null }],
  ['data\n\n', { id: null, retryMs: null, data: null }],
])('%j', (text, event) => {
  expect(readRpcEvent(text)).toEqual(event)
})
