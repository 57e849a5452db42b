/** The built gateway while its PostgreSQL database is down: at the start, under load, and back again. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'
import { TurnLanes } from '../support/turn-lanes.ts'

const RESPONSES = '/v1/responses'
const MODEL = 'test-model'
const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hello' }] }
const turn = { model: MODEL, input: 'Hello' }

describe.skipIf(postgresSkipReason !== null)('without the database', () => {
  let server: PostgresServer
  let worker: ScriptedWorker

  beforeEach(async () => {
    server = await startPostgres()
    worker = await startScriptedWorker()
    worker.script(CHAT, chatAnswer('Hi.'))
  })

  afterEach(async () => {
    await stopCommands()
    await worker.close()
    await server.remove()
  })

  const start = (postgres: object = {}) =>
    startBuiltGateway({
      kernel: { threads: 2 },
      plugins: {
        generations: {},
        postgres: { url: server.url, bootWaitMs: 0, ...postgres },
        history: {},
        conversations: {},
        responses: {},
        usage: {},
      },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: MODEL }] }],
    })

  const readiness = async (gateway: BuiltGateway) => (await gateway.get('/readiness')).json()

  const isUp = async (gateway: BuiltGateway, isUp: boolean) => {
    await until(
      async () => (((await readiness(gateway)) as { degraded?: object }).degraded === undefined) === isUp,
    )
  }

  /** Generations of the worker so far. */
  const generated = () => worker.requestsTo(CHAT).length

  async function expectRefused(gateway: BuiltGateway, path: string, body: object): Promise<void> {
    const before = generated()
    const response = await gateway.send('POST', path, body)
    expect(await response.json()).toMatchObject({ error: { code: 'storage_unavailable' } })
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
    expect(generated()).toBe(before)
  }

  async function expectDegraded(gateway: BuiltGateway): Promise<void> {
    expect(await readiness(gateway)).toMatchObject({
      status: 'ready',
      degraded: [{ service: 'shared-store', problem: expect.stringMatching(/^the database/) }],
    })
    expect((await gateway.send('POST', '/v1/chat/completions', chat)).status).toBe(200)
    expect((await gateway.send('POST', RESPONSES, { ...turn, store: false })).status).toBe(200)
    await expectRefused(gateway, RESPONSES, turn)
    await expectRefused(gateway, RESPONSES, { ...turn, stream: true })
    await expectRefused(gateway, RESPONSES, { ...turn, background: true })
    await expectRefused(gateway, RESPONSES, { ...turn, store: false, previous_response_id: 'resp_1' })
    await expectRefused(gateway, RESPONSES, { ...turn, store: false, conversation: 'conv_1' })
    await expectRefused(gateway, '/v1/conversations', {})
    expect((await gateway.metrics()).get('weir_db_up{storage_type="postgres"}')).toBe(0)
  }

  test('the gateway starts, serves what needs no store, and notices when it is there', async () => {
    await server.stop()
    const gateway = await start()
    await expectDegraded(gateway)
    await server.start()
    await isUp(gateway, true)
    const response = await gateway.send('POST', RESPONSES, turn)
    expect(response.status).toBe(200)
    const { id } = (await response.json()) as { id: string }
    const next = await gateway.send('POST', RESPONSES, { ...turn, previous_response_id: id })
    expect(next.status).toBe(200)
    const background = await gateway.send('POST', RESPONSES, { ...turn, background: true })
    const { id: job } = (await background.json()) as { id: string }
    await until(async () => (await status(gateway, job)) === 'completed')
    expect((await gateway.metrics()).get('weir_db_up{storage_type="postgres"}')).toBe(1)
  })

  test('lost under load, nothing is generated that cannot be stored, and the load continues afterwards', async () => {
    const gateway = await start()
    const lanes = new TurnLanes(gateway.url, { model: MODEL, lanes: 32, chainLength: 5 })
    await until(() => lanes.acknowledged.length > 300)
    await server.kill()
    await isUp(gateway, false)
    const [before, refusedBefore] = [generated(), lanes.refusals.get('storage_unavailable') ?? 0]
    await until(() => (lanes.refusals.get('storage_unavailable') ?? 0) > refusedBefore + 500)
    // Those that were being generated when the outage was noticed.
    expect(generated() - before).toBeLessThanOrEqual(32)
    expect((await gateway.send('POST', '/v1/chat/completions', chat)).status).toBe(200)
    await server.start()
    const acknowledged = lanes.acknowledged.length
    await until(() => lanes.acknowledged.length > acknowledged + 300)
    await lanes.stop()
    // Also of those that were being generated when the database was lost.
    expect([...lanes.refusals.keys()]).toEqual(['storage_unavailable'])
    expect(await TurnLanes.missing(gateway.url, lanes.acknowledged)).toEqual([])
  })

  test('lost during generations, clients may retry them, and a background response has failed', async () => {
    const gateway = await start()
    const gate = Promise.withResolvers<void>()
    const answer = chatAnswer('Hi.')
    worker.script(CHAT, async (request) => {
      await gate.promise
      return typeof answer === 'function' ? answer(request) : answer
    })
    const background = await gateway.send('POST', RESPONSES, { ...turn, background: true })
    const { id } = (await background.json()) as { id: string }
    const whole = gateway.send('POST', RESPONSES, turn)
    const streamed = gateway.send('POST', RESPONSES, { ...turn, stream: true })
    await worker.received(CHAT, 3)
    // In order: the last writes of a killed database may be lost, and the job would run again.
    await server.stop()
    gate.resolve()
    const reply = await whole
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await reply.json()).toMatchObject({ error: { code: 'storage_unavailable' } })
    const events = (await (await streamed).text())
      .split('\n\n')
      .filter((event) => event.startsWith('event: '))
    expect(events.at(-2)).toMatch(/^event: error\n.*"code":"storage_unavailable"/)
    expect(events.at(-1)).toMatch(/^event: response\.failed\n/)
    await server.start()
    await until(async () => (await status(gateway, id)) === 'failed')
    const failed = (await (await gateway.get(`${RESPONSES}/${id}`)).json()) as object
    expect(failed).toMatchObject({
      error: { code: 'server_error', message: expect.stringMatching(/^the record store is unavailable/) },
    })
  })

  test('an outage is one line in the log of each part that it concerns, without a stack', async () => {
    const gateway = await start()
    const background = await gateway.send('POST', RESPONSES, { ...turn, background: true })
    const { id } = (await background.json()) as { id: string }
    await until(async () => (await status(gateway, id)) === 'completed')
    const first = gateway.command.lines.length
    await server.kill()
    await isUp(gateway, false)
    // Each has usage that the ledger tries to store once a second.
    const isDownUntilMs = performance.now() + 4_000
    await until(async () => {
      await gateway.send('POST', '/v1/chat/completions', chat)
      return performance.now() > isDownUntilMs
    })
    const lines = gateway.command.lines.slice(first)
    expect(lines.filter((line) => line.includes('"stack"'))).toEqual([])
    const said = lines.map((line) => {
      const { msg, thread } = JSON.parse(line) as { msg: string; thread: number }
      return `${msg} on ${thread}`
    })
    expect(said).toContain('record store unavailable on 0')
    expect(said).toContain('usage could not be stored on 0')
    expect(said.toSorted()).toEqual([...new Set(said)].sort())
  })

  test('a database that cannot be used still stops the start', async () => {
    const url = server.url.replace('/postgres', '/nothing')
    await expect(start({ url, bootWaitMs: 3_000 })).rejects.toThrow(/database "nothing" does not exist/)
  })

  async function status(gateway: BuiltGateway, id: string): Promise<string> {
    const response = await gateway.get(`${RESPONSES}/${id}`)
    return ((await response.json()) as { status: string }).status
  }
})
