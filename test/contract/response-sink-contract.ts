/** Contract of response sinks; runs over HTTP and over a WebSocket. */
import { afterEach, describe, expect, test } from 'vitest'
import { apiErrorFormat, type Host, type RequestContext } from '#kernel'
import { messageSocket } from '#shared'
import type { TestGateway } from '../support/gateway.ts'
import { type HookedGateway, type HookedOptions, openHooked } from '../support/hooked-gateway.ts'
import { streamAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'

/** A client of one request, connected to `PATH`. */
export interface SinkClient {
  /** What has arrived of the response: the body, or all messages joined. */
  text(): string
  /** The response is complete or the connection closed. */
  readonly over: Promise<void>
  /** Stops reading. */
  pause(): void
  resume(): void
  /** Disconnects. */
  leave(): void
}

export const PATH = '/sink'

type Handler = (ctx: RequestContext, host: Host) => void

/** @param connect sends one request to `PATH`; resolves when it is on its way */
export function responseSinkContract(
  name: string,
  connect: (gateway: TestGateway) => Promise<SinkClient>,
): void {
  describe(`${name}: a response sink`, () => {
    const closers: (() => unknown)[] = []
    afterEach(async () => {
      for (const close of closers.splice(0).reverse()) await close()
    })

    async function open(
      handler: Handler,
      options: HookedOptions = {},
    ): Promise<{ hooked: HookedGateway; client: SinkClient; ends: RequestContext[] }> {
      const ends: RequestContext[] = []
      const hooked = await openHooked((host) => {
        const route = { path: PATH, access: 'public', errors: apiErrorFormat } as const
        host.route({
          ...route,
          method: 'POST',
          docs: { summary: 'of a test', tag: 'test', responses: {} },
          handler: (ctx) => handler(ctx, host),
        })
        host.socket(messageSocket({ ...route, onMessage: (ctx) => handler(ctx, host) }))
        // The request that opens a socket ends before the first message is handled.
        host.hook('onDone', (ctx) => void (ctx.status !== 101 && ctx.path === PATH && ends.push(ctx)))
      }, options)
      closers.push(() => hooked.close())
      const client = await connect(hooked.gateway)
      closers.push(() => client.leave())
      return { hooked, client, ends }
    }

    test('sends a complete response, once', async () => {
      const { client, ends } = await open((ctx) => {
        ctx.text(200, 'first')
        ctx.text(200, 'second')
      })
      await expect.poll(() => client.text()).toBe('first')
      await expect.poll(() => ends.length).toBe(1)
      expect(ends[0]).toMatchObject({ status: 200, isAborted: false, bytesOut: 5 })
    })

    test('streams any content type, without heartbeats', async () => {
      const { client, ends } = await open(
        (ctx) => {
          const lines = ctx.stream(200, ['content-type', 'application/x-ndjson'])
          lines.write('{"n":1}\n')
          lines.write('{"n":2}\n')
          setTimeout(() => lines.end('{"n":3}\n'), 1_200)
        },
        { kernel: { http: { heartbeatMs: 100 } } },
      )
      await expect.poll(() => ends.length).toBe(1)
      await expect.poll(() => client.text()).toBe('{"n":1}\n{"n":2}\n{"n":3}\n')
      expect(ends[0]).toMatchObject({ status: 200, errorCode: null, bytesOut: 24 })
    })

    test('an event stream has no other content type', async () => {
      const { client } = await open((ctx) => {
        expect(() => ctx.sse(200, ['content-type', 'application/x-ndjson'])).toThrow('use ctx.stream')
        ctx.text(200, 'sent')
      })
      await expect.poll(() => client.text()).toBe('sent')
    })

    test('ends a stream with the error encoding of the stream', async () => {
      const { client, ends } = await open((ctx) => {
        const encodeError = ({ code }: { code: string }) => `{"error":"${code}"}\n`
        ctx.stream(200, ['content-type', 'application/x-ndjson'], { encodeError }).write('{"n":1}\n')
        setTimeout(() => ctx.fail(new Error('broken')), 50)
      })
      await expect.poll(() => client.text()).toBe('{"n":1}\n{"error":"internal_error"}\n')
      expect(ends[0]).toMatchObject({ status: 200, errorCode: 'internal_error', isAborted: false })
    })

    test('ends an event stream with the error event of the format', async () => {
      const { client } = await open((ctx) => {
        ctx.sse().write('data: one\n\ndata: tw')
        setTimeout(() => ctx.fail(new Error('broken')), 50)
      })
      await expect.poll(() => client.text()).toContain('"code":"internal_error"')
    })

    test.each([
      ['none', undefined],
      [
        'one that throws',
        () => {
          throw new Error('bad encoder')
        },
      ],
    ])('cuts a stream that fails where its encoder is %s', async (_which, encodeError) => {
      const { client, ends } = await open((ctx) => {
        ctx.stream(200, ['content-type', 'text/plain'], { encodeError }).write('one')
        setTimeout(() => ctx.fail(new Error('broken')), 50)
      })
      await client.over
      expect(client.text()).toBe('one')
      expect(ends[0]).toMatchObject({ status: 200, errorCode: 'internal_error', isAborted: true })
    })

    test('an error before the first byte of a stream is a complete error response', async () => {
      const { client, ends } = await open((ctx) => {
        ctx.stream(200, ['content-type', 'text/plain'], { encodeError: () => 'not used' })
        ctx.fail(new Error('broken'))
      })
      await expect.poll(() => client.text()).toContain('"code":"internal_error"')
      expect(ends[0]).toMatchObject({ status: 500, errorCode: 'internal_error' })
    })

    test('reports a disconnected client once', async () => {
      const calls: string[] = []
      const { client, ends } = await open((ctx) => {
        ctx.onAbort(() => calls.push('abort'))
        ctx.onCancel(() => calls.push('cancel'))
        ctx.stream(200, ['content-type', 'text/plain']).write('one')
      })
      await expect.poll(() => client.text()).toBe('one')
      client.leave()
      await expect.poll(() => ends.length).toBe(1)
      expect(ends[0].isAborted).toBe(true)
      expect(calls).toEqual(['cancel', 'abort'])
    })

    test('pauses its writer while the client does not read, without data loss', async () => {
      const line = `${'x'.repeat(200_000)}\n`
      const writes: boolean[] = []
      const isPaused = Promise.withResolvers<void>()
      const { client } = await open((ctx) => {
        const lines = ctx.stream(200, ['content-type', 'text/plain'])
        const write = () => {
          while (writes.length < 200) {
            writes.push(lines.write(line))
            if (writes.at(-1) === false) return ctx.flow.whenReleased(write)
          }
          lines.end('end')
        }
        lines.write('start')
        void isPaused.promise.then(write)
      })
      await expect.poll(() => client.text()).toBe('start')
      client.pause()
      isPaused.resolve()
      // More than all buffers hold: the rest is written only once the client reads.
      await expect.poll(() => writes.includes(false)).toBe(true)
      expect(writes.length).toBeLessThan(200)
      client.resume()
      await expect.poll(() => client.text().endsWith('end')).toBe(true)
      expect(client.text().length).toBe('start'.length + 200 * line.length + 'end'.length)
    })

    test('a client that stops reading pauses its worker and is disconnected; other requests continue', async () => {
      const steps = 6_000
      let sent = 0
      function* flood() {
        for (; sent < steps; sent++) yield `data: ${'x'.repeat(16_384)}\n\n`
      }
      const gate = Promise.withResolvers<void>()
      const relay: Handler = (ctx, host) =>
        host.upstream.relay(ctx, { model: null, stream: true, path: '/echo' })
      const headers = { 'content-type': 'text/event-stream' }
      const { client, hooked, ends } = await open(relay, {
        answer: streamAnswer(flood(), { headers }),
        kernel: { http: { replyIdleMs: 1_000, heartbeatMs: 0 } },
      })
      await expect.poll(() => client.text().length).toBeGreaterThan(0)
      client.pause()
      hooked.worker.once(
        'POST /echo',
        streamAnswer(['data: 1\n\n', { until: gate.promise }, 'data: 2\n\n'], { headers }),
      )
      const other = openSse(`${hooked.gateway.url}/relay`, { body: { model: 'm' } })
      await expect.poll(() => other.events.length).toBe(1)
      const [request] = hooked.worker.requestsTo('POST /echo')
      await request.closed
      expect(request.isAborted).toBe(true)
      expect(sent).toBeLessThan(steps)
      expect(ends.map(({ errorCode }) => errorCode)).toEqual(['reply_timeout'])
      client.resume()
      await client.over
      gate.resolve()
      await other.done
      expect(other.events.length).toBe(2)
    })
  })
}
