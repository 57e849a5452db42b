/** A plugin's own error format: in responses, at the end of broken streams, and when it fails itself. */
import { afterEach, expect, test } from 'vitest'
import { apiErrorFormat, defineErrors, type ErrorFormat, type ErrorOptions, type Host, Type } from '#kernel'
import { type HookedGateway, openHooked } from '../support/hooked-gateway.ts'
import { textUntilCut } from '../support/text-until-cut.ts'

const errors = defineErrors('error-format-test', {
  overloaded: { kind: 'unavailable', source: 'gateway', text: () => 'too much' },
})

let open: HookedGateway | null = null
afterEach(async () => {
  await open?.close()
  open = null
})

const plain: ErrorFormat = {
  name: 'PlainError',
  schema: Type.String(),
  contentType: 'text/plain; charset=utf-8',
  status: () => 529,
  headers: (_error, { requestId }) => ['x-trouble', requestId],
  body: ({ code }, { path }) => `${code} at ${path}`,
  lastEvents: ({ code }) => `event: broken\ndata: ${code}\n\nevent: end\ndata:\n\n`,
}

function addRoutes(host: Host, format: ErrorFormat, options: ErrorOptions = {}): void {
  const base = {
    method: 'GET',
    access: 'public',
    errors: format,
    docs: { summary: 'fails', tag: 'test', responses: {} },
  } as const
  host.route({
    ...base,
    path: '/fails',
    handler: () => {
      throw errors.overloaded.with(options)
    },
  })
  host.route({
    ...base,
    path: '/breaks',
    handler: (ctx) => {
      const events = ctx.sse()
      events.write('data: half')
      setTimeout(() => ctx.fail(errors.overloaded()), 20)
    },
  })
}

async function replies(format: ErrorFormat, options?: ErrorOptions) {
  open = await openHooked((host) => addRoutes(host, format, options))
  const { url } = open.gateway
  const reply = await fetch(`${url}/fails`, { headers: { 'x-request-id': 'abc' } })
  const broken = await fetch(`${url}/breaks`)
  return { reply, text: await reply.text(), stream: await textUntilCut(broken) }
}

test("a route's error format decides status, headers, content type and body", async () => {
  const { reply, text } = await replies(plain)
  expect(reply.status).toBe(529)
  expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(reply.headers.get('x-trouble')).toBe('abc')
  expect(reply.headers.get('x-weir-error-code')).toBe('overloaded')
  expect(text).toBe('overloaded at /fails')
})

test('a stream that breaks ends with the last events of the format, separate from an unfinished event', async () => {
  const { stream } = await replies(plain)
  expect(stream).toBe('data: half\n\nevent: broken\ndata: overloaded\n\nevent: end\ndata:\n\n')
})

test.each<[string, Partial<ErrorFormat>]>([
  [
    'throws',
    {
      body: () => {
        throw new Error('bug')
      },
      lastEvents: () => {
        throw new Error('bug')
      },
    },
  ],
  ['gives a status that is no error', { status: () => 200, lastEvents: () => 7 as unknown as string }],
  [
    'gives headers that no line can hold',
    { headers: () => ['x-a', 'b\r\nc: d'], lastEvents: apiErrorFormat.lastEvents },
  ],
])('a format that %s leaves the client with an answer of the kernel’s own', async (_how, faults) => {
  const { reply, text, stream } = await replies({ ...plain, ...faults })
  expect(reply.status).toBe(503)
  expect(JSON.parse(text)).toEqual({
    error: { message: 'too much', type: 'service_unavailable', code: 'overloaded' },
  })
  expect(stream).toContain('"code":"overloaded"')
})

test('invalid headers of an error are dropped, the others are sent', async () => {
  const { reply } = await replies(plain, { headers: ['x-a', 'b\r\nc: d', 'x y', 'z', 'retry-after', '3'] })
  expect([reply.status, reply.headers.get('retry-after')]).toEqual([529, '3'])
  expect(['x-a', 'c'].filter((name) => reply.headers.has(name))).toEqual([])
})

test('an error that no format can encode is 500 with a fixed body', async () => {
  const { reply, text } = await replies({ ...plain, status: () => 200 }, { status: 700 })
  expect([reply.status, reply.headers.get('x-weir-error-code')]).toEqual([500, 'internal_error'])
  expect(JSON.parse(text)).toEqual({
    error: { message: 'internal error', type: 'internal_error', code: 'internal_error' },
  })
})

test('a route without an error format prevents the start, with its name', async () => {
  await expect(openHooked((host) => addRoutes(host, 'api' as unknown as ErrorFormat))).rejects.toThrow(
    /GET \/fails: errors must be an error format/,
  )
})
