/** Hints between two gateways that share PostgreSQL and a mesh: without them these tests wait for polls. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { CHAT, chatAnswer, chunk } from '../support/chat-script.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { type ScriptedWorker, sseAnswer, startScriptedWorker } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

const model = 'test-model'
const PATH = '/v1/responses'
const TRIES = 5
/** Without hints, a follower reads twice a second, so that each piece would arrive after 350 ms. */
const UNHINTED_MS = 300
/** Without hints, jobs and cancellations would wait for the next poll. */
const POLL_MS = 60_000

/** On a busy machine only the best of several tries counts. */
const best = (values: readonly number[]) => Math.min(...values)

describe.skipIf(postgresSkipReason !== null || valkeySkipReason !== null)(
  'over PostgreSQL and Valkey',
  () => {
    let postgres: PostgresServer
    let valkey: ValkeyServer
    let worker: ScriptedWorker
    let one: BuiltGateway
    let two: BuiltGateway

    beforeAll(async () => {
      postgres = await startPostgres()
      valkey = await startValkey()
      worker = await startScriptedWorker({ models: [model] })
      one = await open('one', 1)
      two = await open('two', 8)
    })

    afterAll(async () => {
      await stopCommands()
      await worker?.close()
      await valkey?.remove()
      await postgres?.remove()
    })

    /** @param maxRunning background responses that run at the same time on its only thread */
    const open = (name: string, maxRunning: number) =>
      startBuiltGateway({
        kernel: { threads: 1, shutdown: { graceMs: 1_000, settleMs: 0 } },
        plugins: {
          generations: {},
          postgres: { url: postgres.url },
          history: {},
          responses: { background: { pollMs: POLL_MS, maxRunning, afterCrash: 'restart' } },
          mesh: { name, secret: 'a secret of the mesh' },
          'mesh-valkey': { url: valkey.url },
        },
        workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: model }] }],
      })

    async function background(gateway: BuiltGateway): Promise<string> {
      const response = await gateway.send('POST', PATH, { model, input: 'hi', background: true })
      return ((await response.json()) as { id: string }).id
    }

    /** Scripts a response that pauses before each piece. @returns functions that release one each */
    function held(pieces: number): (() => void)[] {
      const gates = Array.from({ length: pieces }, () => Promise.withResolvers<void>())
      const parts = gates.flatMap(({ promise }, at) => [{ until: promise }, chunk({ content: `${at} ` })])
      worker.script(
        CHAT,
        sseAnswer([chunk({ role: 'assistant', content: '' }), ...parts, chunk({}, 'stop'), '[DONE]']),
      )
      return gates.map(({ resolve }) => resolve)
    }

    test('events reach a follower on the other gateway at once', async () => {
      const release = held(6 * TRIES)
      const id = await background(one)
      await worker.received(CHAT)
      const stream = openSse(`${two.url}${PATH}/${id}?stream=true`)
      const deltas = () => stream.events.filter(({ event }) => event === 'response.output_text.delta').length
      const delays: number[] = []
      for (const [at, next] of release.entries()) {
        // The first one tells that the follower is there.
        const isEnough = at > TRIES && best(delays.slice(1)) < UNHINTED_MS
        const startedAtMs = performance.now()
        next()
        if (isEnough) continue
        await expect.poll(deltas, { interval: 2 }).toBe(at + 1)
        delays.push(performance.now() - startedAtMs)
        // Otherwise the next piece would fall into the read of this one.
        await new Promise((resolve) => setTimeout(resolve, 150))
      }
      await stream.done
      expect(stream.events.at(-2)?.event).toBe('response.completed')
      console.info('follow, milliseconds:', delays.slice(1).map(Math.round).join(' '))
      expect(best(delays.slice(1))).toBeLessThan(UNHINTED_MS)
    })

    test('a cancellation on the other gateway stops the worker request at once', async () => {
      const delays: number[] = []
      for (let at = 0; at < TRIES; at++) {
        worker.requests.length = 0
        const [release] = held(1)
        const id = await background(one)
        const request = await worker.received(CHAT)
        const startedAtMs = performance.now()
        const response = await two.send('POST', `${PATH}/${id}/cancel`)
        expect([response.status, await response.json()]).toMatchObject([200, { status: 'cancelled' }])
        await request.closed
        delays.push(performance.now() - startedAtMs)
        expect(request.isAborted).toBe(true)
        release()
      }
      console.info('cancel, milliseconds:', delays.map(Math.round).join(' '))
      expect(best(delays)).toBeLessThan(5_000)
    })

    test('a job that its gateway has no room for starts on the other at once', async () => {
      worker.requests.length = 0
      const [release] = held(1)
      const first = await background(one)
      await worker.received(CHAT)
      worker.script(CHAT, chatAnswer('done'))
      const startedAtMs = performance.now()
      await background(one)
      const { receivedAtMs } = await worker.received(CHAT, 2)
      console.info('job, milliseconds:', Math.round(receivedAtMs - startedAtMs))
      expect(receivedAtMs - startedAtMs).toBeLessThan(POLL_MS / 2)
      release()
      await expect
        .poll(async () => (await (await two.get(`${PATH}/${first}`)).json()) as object)
        .toMatchObject({ status: 'completed' })
    })

    test('a job of a gateway that stops continues on the other at once', async () => {
      for (let isOnOne = false; !isOnOne; ) {
        worker.requests.length = 0
        const [release] = held(1)
        await background(one)
        await worker.received(CHAT)
        isOnOne = Object.values(await one.loads())[0] > 0
        // Until the end of the previous job is noticed, the other gateway takes the next one.
        if (!isOnOne) release()
      }
      worker.script(CHAT, chatAnswer('done'))
      one.command.signal('SIGTERM')
      const { receivedAtMs } = await worker.received(CHAT, 2, 60_000)
      const endedAtMs = worker.requests[0].closedAtMs ?? Number.NaN
      console.info('job of a stopped gateway, milliseconds:', Math.round(receivedAtMs - endedAtMs))
      expect(receivedAtMs - endedAtMs).toBeLessThan(POLL_MS / 2)
    })
  },
)
