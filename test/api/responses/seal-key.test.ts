/** Encrypted reasoning across restarts, gateways and keys, and reasoning that cannot be decrypted. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exportHistory } from '../../../plugins/state/history/history-export.ts'
import { LevelStore } from '../../../plugins/state/storage/level-store.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../../support/postgres-server.ts'
import { NATIVE, nativeAnswer } from '../../support/responses-script.ts'
import { openSse } from '../../support/sse-client.ts'
import {
  chatAnswer,
  type Json,
  newDirectory,
  openResponses,
  RESPONSES,
  type ResponseJson,
  type ResponsesFleet,
} from './responses-fleet.ts'
import { check, connect } from './socket-client.ts'

const thinks = chatAnswer({ content: 'four', reasoning_content: 'two and two' })
const question = { role: 'user', content: 'hi' }
const call = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'c1', output: 'x' }
const foreign = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAAABofromelsewhere' }
const WARNING = 'encrypted_reasoning_dropped; items=1'

/** A reasoning item as held by a client that keeps its own history. */
async function sealedBy(fleet: ResponsesFleet): Promise<ResponseJson> {
  const reply = await fleet.create({ input: [question], store: false })
  const { content: _, ...sealed } = reply.output[0]
  expect(sealed.encrypted_content).toEqual(expect.any(String))
  return sealed
}

/** The messages that the worker gets for the item, and the warning. */
async function sendBack(fleet: ResponsesFleet, item: ResponseJson) {
  const body = { model: 'test-model', store: false, input: [question, item, call, output] }
  const reply = await fleet.post(RESPONSES, body)
  expect(reply.status, await reply.text()).toBe(200)
  const { messages } = fleet.asked().at(-1)
  return [messages[1].reasoning_content, reply.headers.get('x-weir-warning')]
}

const OPENED = ['two and two', null]
const DROPPED = [undefined, WARNING]

describe('the key', () => {
  const open = (plugins: Json) => openResponses(thinks, { plugins })

  test('is kept in the data directory: reasoning can be decrypted after a restart', async () => {
    const storage = { dir: newDirectory() }
    const first = await open({ storage })
    const sealed = await sealedBy(first)
    await first.gateway.stop()
    const second = await open({ storage })
    expect(await sendBack(second, sealed)).toEqual(OPENED)
    expect(await sendBack(await open({}), sealed)).toEqual(DROPPED)
  })

  test('is kept without history too', async () => {
    const plugins = { storage: { dir: newDirectory() }, history: false }
    const first = await open(plugins)
    const sealed = await sealedBy(first)
    await first.gateway.stop()
    expect(await sendBack(await open(plugins), sealed)).toEqual(OPENED)
  })

  test('lives only as long as the process without a store', async () => {
    const plugins = { storage: false, history: false }
    const first = await open(plugins)
    const sealed = await sealedBy(first)
    expect(await sendBack(first, sealed)).toEqual(OPENED)
    expect(await sendBack(await open(plugins), sealed)).toEqual(DROPPED)
  })

  test('from the configuration seals; reasoning sealed by the stored key can still be decrypted', async () => {
    const storage = { dir: newDirectory() }
    const responses = { encryptionKey: 'k'.repeat(32) }
    const first = await open({ storage })
    const old = await sealedBy(first)
    await first.gateway.stop()
    const second = await open({ storage, responses })
    expect(await sendBack(second, old)).toEqual(OPENED)
    const sealed = await sealedBy(second)
    await second.gateway.stop()
    expect(await sendBack(await open({ responses }), sealed)).toEqual(OPENED)
    const third = await open({ storage })
    expect([await sendBack(third, old), await sendBack(third, sealed)]).toEqual([OPENED, DROPPED])
  })

  test('is not part of a history export', async () => {
    const dir = newDirectory()
    const fleet = await open({ storage: { dir } })
    await fleet.create({ input: 'hi' })
    await fleet.gateway.stop()
    const store = new LevelStore(dir)
    await store.open()
    const kept = await store.collection<{ key: string }>('gateway-secrets').list('_gateway')
    const lines: string[] = []
    for await (const line of exportHistory(store)) lines.push(line)
    await store.close()
    expect(kept).toEqual([{ key: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) }])
    expect(lines.length).toBeGreaterThan(2)
    expect(lines.join('')).not.toContain(kept[0].key)
    expect(lines.join('')).not.toContain('gateway-secrets')
  })
})

describe.skipIf(postgresSkipReason !== null)('with a PostgreSQL server', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.remove(), 120_000)

  test('gateways that start at the same time agree on one key', async () => {
    const plugins = { storage: false, postgres: { url: server.url } }
    const fleets = await Promise.all([1, 2].map(() => openResponses(thinks, { plugins })))
    for (const [from, to] of [fleets, [...fleets].reverse()])
      expect(await sendBack(to, await sealedBy(from))).toEqual(OPENED)
  })

  test('a gateway with an own key in its data directory still decrypts what that key sealed', async () => {
    const storage = { dir: newDirectory() }
    const alone = await openResponses(thinks, { plugins: { storage } })
    const sealed = await sealedBy(alone)
    await alone.gateway.stop()
    const joined = await openResponses(thinks, { plugins: { storage, postgres: { url: server.url } } })
    expect(await sendBack(joined, sealed)).toEqual(OPENED)
  })
})

describe('reasoning that cannot be decrypted', () => {
  const input = [question, foreign, { role: 'assistant', content: 'hello' }, { role: 'user', content: 'so?' }]
  const body = { model: 'test-model', input }

  test('is dropped and reported in a header, for every route and form', async () => {
    const fleet = await openResponses(chatAnswer('ok'), {
      plugins: { tokenizers: { load: [{ name: 'test-model', source: 'weir:sample' }] } },
    })
    const { post, gateway, asked } = fleet
    // The tokenizer loads in the background.
    const counted = async () => (await post(`${RESPONSES}/input_tokens`, body)).status
    await expect.poll(counted).toBe(200)
    for (const [path, more] of [
      [RESPONSES, {}],
      [RESPONSES, { background: true }],
      [`${RESPONSES}/compact`, {}],
      [`${RESPONSES}/input_tokens`, {}],
    ] as const) {
      const reply = await post(path, { ...body, ...more })
      expect([reply.status, reply.headers.get('x-weir-warning')], path).toEqual([200, WARNING])
    }
    const sse = openSse(gateway.url + RESPONSES, { body: { ...body, stream: true } })
    await sse.done
    expect([sse.status, sse.headers.get('x-weir-warning')]).toEqual([200, WARNING])
    const { turn } = await connect(gateway.url)
    expect(check(await turn({ input })).response.status).toBe('completed')
    expect(JSON.stringify(asked())).not.toContain(foreign.encrypted_content)
  })

  test('is dropped in each later turn of its chain too', async () => {
    const fleet = await openResponses(chatAnswer('ok'))
    let previous_response_id: string | undefined
    for (const next of [input, 'and then?', 'and then?']) {
      const reply = await fleet.post(RESPONSES, { ...body, input: next, previous_response_id })
      expect([reply.status, reply.headers.get('x-weir-warning')]).toEqual([200, WARNING])
      previous_response_id = ((await reply.json()) as ResponseJson).id
    }
    const plain = await fleet.post(RESPONSES, { ...body, input: 'new' })
    expect(plain.headers.get('x-weir-warning')).toBeNull()
  })

  test('is not sent to a Responses worker', async () => {
    const { workers, post } = await openResponses(undefined, {
      workers: [{ spec: { apis: ['responses'] } }],
      plugins: {},
    })
    workers[0].script(NATIVE, nativeAnswer('ok'))
    const reply = await post(RESPONSES, body)
    expect([reply.status, reply.headers.get('x-weir-warning')]).toEqual([200, WARNING])
    const [request] = workers[0].requestsTo(NATIVE)
    expect((request.json() as ResponseJson).input).toHaveLength(3)
  })

  test('a compaction item that cannot be decrypted is rejected, as it is the history', async () => {
    const { create } = await openResponses(chatAnswer('ok'))
    const compaction = { type: 'compaction', encrypted_content: foreign.encrypted_content }
    const { error } = await create({ input: [compaction, question] }, 400)
    expect(error.code).toBe('invalid_encrypted_content')
  })
})
