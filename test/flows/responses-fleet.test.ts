/** Two built gateways on one PostgreSQL: they share responses and conversations, and survive the loss of a gateway or of the store. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { CHAT, chatAnswer, chunk } from '../support/chat-script.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { checkResponseEvents } from '../support/response-events.ts'
import { type ScriptedWorker, sseAnswer, startScriptedWorker } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'

// biome-ignore lint/suspicious/noExplicitAny: responses of any shape
type ResponseJson = any

const model = 'test-model'
const PATH = '/v1/responses'
let server: PostgresServer
let worker: ScriptedWorker
let one: BuiltGateway
let two: BuiltGateway

describe.skipIf(postgresSkipReason !== null)('with a PostgreSQL server', () => {
  // Both gateways serve the whole file; the last tests first kill one gateway, then the store.
  beforeAll(async () => {
    server = await startPostgres()
    worker = await startScriptedWorker({ models: [model] })
    one = await open()
    two = await open()
  })

  beforeEach(() => {
    worker.requests.length = 0
    worker.script(CHAT, chatAnswer('hello there'))
  })

  afterAll(async () => {
    await stopCommands()
    await worker?.close()
    await server?.remove()
  })

  const open = () =>
    startBuiltGateway({
      plugins: {
        generations: {},
        postgres: { url: server.url },
        history: { ownerLeaseMs: 10_000, lockLeaseMs: 10_000 },
        responses: { background: { pollMs: 50 } },
        conversations: {},
      },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: model }] }],
    })

  async function send(
    gateway: BuiltGateway,
    method: string,
    path: string,
    body?: object,
  ): Promise<ResponseJson> {
    const reply = await gateway.send(method, path, body === undefined ? undefined : { model, ...body })
    return { code: reply.status, ...((await reply.json()) as object) }
  }

  async function ended(gateway: BuiltGateway, id: string, limitMs = 90_000): Promise<ResponseJson> {
    const until = performance.now() + limitMs
    for (;;) {
      const reply = await send(gateway, 'GET', `${PATH}/${id}`)
      if (reply.status !== 'queued' && reply.status !== 'in_progress') return reply
      if (performance.now() > until) throw new Error(`still ${reply.status}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** Scripts a response that pauses after its first words. @returns a function that resumes it */
  function held() {
    const gate = Promise.withResolvers<void>()
    const pieces = ['one ', 'two ', 'three']
    worker.script(
      CHAT,
      sseAnswer([
        chunk({ role: 'assistant', content: pieces[0] }),
        { until: gate.promise },
        chunk({ content: pieces[1] }),
        chunk({ content: pieces[2] }),
        chunk({}, 'stop'),
        '[DONE]',
      ]),
    )
    return gate.resolve
  }

  test('a response stored by one gateway is chained, listed, read and deleted by the other at once', async () => {
    let previous: string | undefined
    for (let turn = 0; turn < 6; turn += 1) {
      const gateway = turn % 2 === 0 ? one : two
      const body = {
        input: `turn ${turn}`,
        ...(previous !== undefined && { previous_response_id: previous }),
      }
      const reply = await send(gateway, 'POST', PATH, body)
      expect([reply.code, reply.status]).toEqual([200, 'completed'])
      previous = reply.id
    }
    const sent = worker.requestsTo(CHAT).at(-1)?.json() as ResponseJson
    expect(sent.messages.filter(({ role }: ResponseJson) => role === 'user')).toHaveLength(6)
    expect(await send(one, 'GET', `${PATH}/${previous}`)).toEqual(
      await send(two, 'GET', `${PATH}/${previous}`),
    )
    const listed = await send(one, 'GET', `${PATH}/${previous}/input_items`)
    expect(listed.data).toMatchObject([{ content: [{ text: 'turn 5' }] }])
    const { id: conversation } = await send(one, 'POST', '/v1/conversations', {})
    await send(two, 'POST', PATH, { input: 'in it', conversation })
    await send(one, 'POST', PATH, { input: 'again', conversation })
    expect((await send(two, 'GET', `/v1/conversations/${conversation}/items`)).data).toHaveLength(4)
    expect((await send(two, 'DELETE', `${PATH}/${previous}`)).deleted).toBe(true)
    expect((await send(one, 'GET', `${PATH}/${previous}`)).code).toBe(404)
  })

  test('a response that runs on one gateway is streamed from the other, and the stream is resumed in the middle', async () => {
    const resume = held()
    const { id } = await send(one, 'POST', PATH, { input: 'hi', background: true })
    const first = openSse(`${two.url}${PATH}/${id}?stream=true`)
    await expect
      .poll(() => first.events.some(({ event }) => event === 'response.output_text.delta'))
      .toBe(true)
    first.close()
    const seen = first.events.length
    const rest = openSse(`${two.url}${PATH}/${id}?stream=true&starting_after=${seen - 1}`)
    resume()
    await rest.done
    const { response, text } = checkResponseEvents([...first.events, ...rest.events])
    expect([text, response.status]).toEqual(['one two three', 'completed'])
    expect((await ended(one, id)).output).toEqual(response.output)
  })

  test('a response that runs on one gateway is cancelled on the other, and its worker request stops', async () => {
    const resume = held()
    const { id } = await send(one, 'POST', PATH, { input: 'hi', background: true })
    const request = await worker.received(CHAT)
    expect(await send(two, 'POST', `${PATH}/${id}/cancel`)).toMatchObject({ code: 200, status: 'cancelled' })
    await request.closed
    resume()
    expect(request.isAborted).toBe(true)
    for (const gateway of [one, two]) expect((await ended(gateway, id)).status).toBe('cancelled')
  })

  test('after a kill of one gateway, acknowledged responses are kept and running ones end as failed or completed', async () => {
    const kept = await send(one, 'POST', PATH, { input: 'kept' })
    const resume = held()
    const ids: string[] = []
    for (let count = 0; count < 8; count += 1)
      ids.push((await send(one, 'POST', PATH, { input: 'hi', background: true })).id)
    await worker.received(CHAT, 9, 20_000)
    one.command.signal('SIGKILL')
    expect((await one.command.ended).signal).toBe('SIGKILL')
    resume()
    const replies: ResponseJson[] = await Promise.all(ids.map((id) => ended(two, id, 40_000)))
    const lost = replies.filter(({ status }) => status === 'failed')
    // Some may have run on the other gateway from the start.
    for (const { status } of replies) expect(['failed', 'completed']).toContain(status)
    for (const { error } of lost) expect(error).toMatchObject({ code: 'server_error' })
    expect(lost.length).toBeGreaterThan(0)
    expect(await send(two, 'GET', `${PATH}/${kept.id}`)).toEqual({ ...kept, code: 200 })
    worker.script(CHAT, chatAnswer('still here'))
    const next = await send(two, 'POST', PATH, { input: 'and?', previous_response_id: kept.id })
    expect(next).toMatchObject({ code: 200, status: 'completed' })
  })

  test('while PostgreSQL is down under load, requests fail with documented errors, nothing is lost, and service recovers', async () => {
    const gateway = two
    const acknowledged: string[] = []
    const failures = new Map<string, number>()
    let isOver = false
    const load = async () => {
      while (!isOver) {
        const reply = await send(gateway, 'POST', PATH, { input: 'hi' }).catch((error: unknown) => ({
          code: 0,
          error: { code: String(error), type: '' },
        }))
        if (reply.code === 200) acknowledged.push(reply.id)
        else {
          const failure = `${reply.code} ${reply.error.type} ${reply.error.code}`
          failures.set(failure, (failures.get(failure) ?? 0) + 1)
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
    }
    const runs = Array.from({ length: 8 }, load)
    await expect.poll(() => acknowledged.length).toBeGreaterThan(20)
    await server.kill()
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    const before = acknowledged.length
    await server.start()
    await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 20)
    isOver = true
    await Promise.all(runs)
    for (const failure of failures.keys())
      expect(failure).toMatch(/^(500|503) (internal_error|service_unavailable) \S+$/)
    expect([...failures.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
    console.info(
      'failures while the store was down:',
      Object.fromEntries(failures),
      'kept:',
      acknowledged.length,
    )
    // A thread that has just failed to connect rejects calls for another 500 ms.
    const read = async (id: string) => {
      const reply = await gateway.get(`${PATH}/${id}`)
      return reply.status === 200 ? 'found' : `${reply.status} ${await reply.text()}`
    }
    for (let at = 0; at < acknowledged.length; at += 50) {
      const ids = acknowledged.slice(at, at + 50)
      await Promise.all(ids.map((id) => expect.poll(() => read(id)).toBe('found')))
    }
  })
})
