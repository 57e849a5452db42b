/** Stored responses: chains, conversations, references, reading, listing, deletion, and resumed streams. */
import { expect, test } from 'vitest'
import { storageUnavailable } from '#shared'
import { checkResponseEvents } from '../../support/response-events.ts'
import { openSse } from '../../support/sse-client.ts'
import {
  CHAT,
  chatAnswer,
  historyPeek,
  newDirectory,
  openResponses,
  RESPONSES,
  type ResponseJson,
} from './responses-fleet.ts'

const tools = [{ type: 'function', name: 'f' }]
const call = (id: string) => ({ id, name: 'f', arguments: '{}' })

test('a chain carries the history, and no instructions', async () => {
  const { create, asked } = await openResponses(chatAnswer('one'))
  const first = await create({ input: 'first', instructions: 'A' })
  const second = await create({ input: 'second', previous_response_id: first.id })
  await create({ input: 'third', previous_response_id: second.id, instructions: 'B' })
  expect(second).toMatchObject({ previous_response_id: first.id, instructions: null })
  expect(asked()[1].messages).toEqual([
    { role: 'user', content: 'first' },
    { role: 'assistant', content: 'one' },
    { role: 'user', content: 'second' },
  ])
  expect(asked()[2].messages).toHaveLength(6)
  expect(asked()[2].messages[0]).toEqual({ role: 'system', content: 'B' })
})

test('a tool output may be the only input, and must not be missing', async () => {
  const { create, asked, workers } = await openResponses()
  workers[0].once(CHAT, chatAnswer({ tool_calls: [call('call_1')] }))
  workers[0].script(CHAT, chatAnswer('done'))
  const first = await create({ input: 'go', tools })
  const refused = await create({ input: 'never mind', previous_response_id: first.id }, 400)
  expect(refused.error).toMatchObject({ code: 'missing_tool_output', param: 'input' })
  const output = { type: 'function_call_output', call_id: 'call_1', output: '' }
  const second = await create({ input: [output], previous_response_id: first.id })
  expect(second.status).toBe('completed')
  expect(asked()[1].messages.slice(1)).toEqual([
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: '' },
  ])
})

test('a response that is not stored is not found', async () => {
  const { create, fetchJson } = await openResponses(chatAnswer('x'))
  const { id, store } = await create({ input: 'hi', store: false })
  expect(store).toBe(false)
  expect((await fetchJson('GET', `/v1/responses/${id}`, 404)).error.code).toBe('response_not_found')
  const refused = await create({ input: 'hi', previous_response_id: id }, 400)
  expect(refused.error).toMatchObject({
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  })
})

test('turn 151 of a chain has the first turn in its history', async () => {
  const { create, asked } = await openResponses(chatAnswer('x'))
  let last = await create({ input: 'the first word' })
  for (let turn = 2; turn <= 151; turn += 1)
    last = await create({ input: `turn ${turn}`, previous_response_id: last.id })
  const { messages } = asked().at(-1)
  expect(messages).toHaveLength(301)
  expect(messages[0].content).toBe('the first word')
})

test('a deleted response is gone, and later turns of its chain work without it', async () => {
  const { create, asked, fetchJson } = await openResponses(chatAnswer('x'))
  const first = await create({ input: 'one' })
  const second = await create({ input: 'two', previous_response_id: first.id })
  const third = await create({ input: 'three', previous_response_id: second.id })
  const path = `/v1/responses/${second.id}`
  expect(await fetchJson('DELETE', path)).toEqual({
    id: second.id,
    object: 'response.deleted',
    deleted: true,
  })
  await fetchJson('DELETE', path, 404)
  await fetchJson('GET', path, 404)
  expect((await create({ input: 'x', previous_response_id: second.id }, 400)).error.code).toBe(
    'previous_response_not_found',
  )
  await create({ input: 'four', previous_response_id: third.id })
  const said = asked()
    .at(-1)
    .messages.map(({ content }: { content: string }) => content)
  expect(said).toEqual(['one', 'x', 'three', 'x', 'four'])
})

test('a response lists its own input in pages, with stable ids', async () => {
  const { create, fetchJson } = await openResponses(chatAnswer('x'))
  const first = await create({ input: 'one' })
  const second = await create({
    input: ['a', 'b', 'c'].map((content) => ({ role: 'user', content })),
    previous_response_id: first.id,
  })
  const list = (id: string, query = '') => fetchJson('GET', `/v1/responses/${id}/input_items${query}`)
  const own = await list(first.id)
  expect(own).toEqual({
    object: 'list',
    data: [
      {
        id: expect.stringMatching(/^msg_/),
        type: 'message',
        role: 'user',
        status: 'completed',
        content: [{ type: 'input_text', text: 'one' }],
      },
    ],
    first_id: own.data[0].id,
    last_id: own.data[0].id,
    has_more: false,
  })
  expect(await list(first.id)).toEqual(own)
  const texts = (page: { data: { content: { text: string }[] }[] }) =>
    page.data.map(({ content }) => content[0].text)
  expect(texts(await list(second.id))).toEqual(['c', 'b', 'a'])
  const page = await list(second.id, '?limit=2&order=asc')
  expect([texts(page), page.has_more]).toEqual([['a', 'b'], true])
  const rest = await list(second.id, `?limit=2&order=asc&after=${page.last_id}`)
  expect([texts(rest), rest.has_more]).toEqual([['c'], false])
  for (const query of ['?limit=0', '?limit=101', '?order=up', '?after=msg_no', '?include=odd'])
    await fetchJson('GET', `/v1/responses/${second.id}/input_items${query}`, 400)
})

test('include of a read is validated, in every notation', async () => {
  const { create, fetchJson } = await openResponses(chatAnswer('x'))
  const { id } = await create({ input: 'hi' })
  const good = 'message.output_text.logprobs'
  for (const query of [
    `include=${good}`,
    `include[]=${good}&include[]=reasoning.encrypted_content`,
    `include=${good},${good}`,
  ])
    await fetchJson('GET', `/v1/responses/${id}?${query}`)
  expect((await fetchJson('GET', `/v1/responses/${id}?include[]=odd`, 400)).error.param).toBe('include')
})

test('a reference is replaced by its item, also outside the chain', async () => {
  const { create, asked } = await openResponses(chatAnswer('the answer'))
  const first = await create({ input: 'one' })
  await create({
    input: [
      { type: 'item_reference', id: first.output[0].id },
      { role: 'user', content: 'and now?' },
    ],
  })
  expect(asked()[1].messages).toEqual([
    { role: 'assistant', content: 'the answer' },
    { role: 'user', content: 'and now?' },
  ])
  await create({
    previous_response_id: first.id,
    input: [{ id: first.output[0].id }, { role: 'user', content: 'again' }],
  })
  expect(asked()[2].messages).toHaveLength(3)
})

test('an aborted generation is a 500', async () => {
  const { create, workers } = await openResponses()
  workers[0].once(CHAT, chatAnswer({ content: 'half', finish: 'abort' }))
  workers[0].script(CHAT, chatAnswer('x'))
  const failed = await create({ input: 'hi' }, 500)
  expect(failed.error.type).toBe('internal_error')
})

test('ids of other tenants are unknown', async () => {
  const { post, gateway } = await openResponses(chatAnswer('x'), {
    plugins: { auth: { tenantKeys: ['a:key-a', 'b:key-b'] } },
  })
  const as = (key: string) => ({ authorization: `Bearer ${key}` })
  const body = { model: 'test-model', input: 'secret' }
  const { id, output } = (await (await post('/v1/responses', body, as('key-a'))).json()) as ResponseJson
  const paths = [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items'],
    ['GET', '?stream=true'],
  ]
  for (const [method, rest] of paths) {
    const url = (which: string) => `${gateway.url}/v1/responses/${which}${rest}`
    const foreign = await fetch(url(id), { method, headers: as('key-b') })
    const unknown = await fetch(url('resp_x'), { method, headers: as('key-b') })
    expect([foreign.status, unknown.status]).toEqual([404, 404])
    expect((await foreign.text()).replaceAll(id, 'resp_x')).toBe(await unknown.text())
    expect((await fetch(url(id), { method })).status).toBe(401)
  }
  for (const fields of [
    { previous_response_id: id },
    { input: [{ type: 'item_reference', id: output[0].id }] },
  ]) {
    const reply = await post('/v1/responses', { ...body, ...fields }, as('key-b'))
    expect([reply.status, (await reply.text()).includes('secret')]).toEqual([400, false])
  }
  expect((await fetch(`${gateway.url}/v1/responses/${id}`, { headers: as('key-a') })).status).toBe(200)
})

test('turns of a conversation are appended in order, one at a time, and only if they complete', async () => {
  const { plugin, get } = historyPeek()
  const { create, workers, post } = await openResponses(chatAnswer('x'), { own: [plugin] })
  const conversation = `conv_${'0'.repeat(32)}`
  await get()
    .conversations.create('anonymous', { id: conversation, createdAtSec: 1, metadata: {} })
    .catch((error) => {
      throw error
    })
  const first = await create({ input: 'one', conversation })
  expect(first.conversation).toEqual({ id: conversation })
  await create({ input: 'two', conversation: { id: conversation } })
  const loaded = await get().conversations.load('anonymous', conversation)
  const texts = async () => {
    const all = await get().conversations.load('anonymous', conversation)
    return all.problem === undefined
      ? all.items.map((item) => (item.content as { text: string }[])[0].text)
      : []
  }
  expect(loaded.problem).toBeUndefined()
  expect(await texts()).toEqual(['one', 'x', 'two', 'x'])
  // A failed turn appends nothing and releases the conversation.
  workers[0].once(CHAT, chatAnswer({ content: 'half', finish: 'abort' }))
  await create({ input: 'three', conversation }, 500)
  expect(await texts()).toHaveLength(4)
  const gate = Promise.withResolvers<void>()
  workers[0].once(CHAT, async (request) => {
    await gate.promise
    return (chatAnswer('slow') as (request: unknown) => never)(request)
  })
  const slow = post('/v1/responses', { model: 'test-model', input: 'four', conversation })
  await workers[0].received(CHAT, 4)
  const busy = await create({ input: 'five', conversation }, 400)
  expect(busy.error).toMatchObject({ code: 'conversation_locked', param: 'conversation' })
  await create({ input: 'six', conversation, store: false })
  gate.resolve()
  expect((await slow).status).toBe(200)
  expect(await texts()).toEqual(['one', 'x', 'two', 'x', 'four', 'slow'])
})

test("a response beyond the tenant's storage quota is rejected before its generation", async () => {
  const { create, stream, asked, fetchJson } = await openResponses(chatAnswer('x'), {
    plugins: { history: { maxBytesPerTenant: 1_048_576 } },
  })
  const first = await create({ input: 'x'.repeat(1_000_000) })
  const big = { input: 'y'.repeat(100_000) }
  const refused = await create(big, 507)
  expect(refused.error).toEqual({
    code: 'storage_quota_exceeded',
    type: 'insufficient_storage',
    message: expect.stringMatching(/stores 1 MiB of at most 1 MiB/),
  })
  expect((await create({ ...big, background: true }, 507)).error.code).toBe('storage_quota_exceeded')
  await expect(stream(big)).rejects.toThrow('507')
  expect(asked()).toHaveLength(1)
  expect((await create({ ...big, store: false })).status).toBe('completed')
  await fetchJson('DELETE', `/v1/responses/${first.id}`)
  expect((await create(big)).status).toBe('completed')
})

test('a response that the store refuses fails', async () => {
  const { plugin, get } = historyPeek()
  const { create, stream } = await openResponses(chatAnswer('x'), { own: [plugin] })
  get().responses.finish = () => Promise.reject(new Error('the record is refused'))
  expect((await create({ input: 'hi' }, 500)).error.code).toBe('storage_error')
  const { types, response } = await stream({ input: 'hi' })
  expect(types.slice(-2)).toEqual(['error', 'response.failed'])
  expect(response.status).toBe('failed')
})

test('if the store is lost during the generation, the client may retry: whole, streamed, in the background', async () => {
  const { plugin, get } = historyPeek()
  const fleet = await openResponses(chatAnswer('x'), { own: [plugin] })
  const { responses } = get()
  const finish = responses.finish.bind(responses)
  responses.finish = () => Promise.reject(storageUnavailable('it is gone'))
  const whole = await fleet.post(RESPONSES, { model: 'test-model', input: 'hi' })
  expect([whole.status, whole.headers.get('retry-after')]).toEqual([503, '5'])
  expect(await whole.json()).toEqual({
    error: {
      code: 'storage_unavailable',
      type: 'service_unavailable',
      message: 'the record store is unavailable: it is gone',
    },
  })
  const { events, types, response } = await fleet.stream({ input: 'hi' })
  expect(types.slice(-2)).toEqual(['error', 'response.failed'])
  expect(events.at(-2)).toMatchObject({ code: 'storage_unavailable', param: null })
  const failed = {
    status: 'failed',
    error: { code: 'server_error', message: expect.stringContaining('it is gone') },
  }
  expect(response).toMatchObject(failed)
  responses.finish = () => {
    responses.finish = finish
    return Promise.reject(storageUnavailable('it is gone'))
  }
  const { id } = await fleet.create({ input: 'hi', background: true })
  await expect.poll(() => fleet.fetchJson('GET', `${RESPONSES}/${id}`)).toMatchObject(failed)
})

test('the stream of a finished response can be replayed from any event on', async () => {
  const said = {
    reasoning_content: 'hm',
    content: 'hello',
    tool_calls: [{ id: 'c1', name: 'f', arguments: '{"a":1}' }],
  }
  const { create, gateway } = await openResponses(chatAnswer(said))
  const reply = await create({ input: 'hi', tools })
  const follow = async (query: string) => {
    const stream = openSse(`${gateway.url}/v1/responses/${reply.id}?stream=true${query}`)
    await stream.done
    return stream.events
  }
  const whole = await follow('')
  expect(checkResponseEvents(whole).response).toEqual(reply)
  const rest = await follow('&starting_after=4')
  expect(rest.map(({ data }) => data)).toEqual(whole.slice(5).map(({ data }) => data))
})

test('an invalid boolean or number in the query is rejected by name', async () => {
  const { create, fetchJson } = await openResponses(chatAnswer('x'))
  const { id } = await create({ input: 'hi' })
  for (const no of ['false', '0']) await fetchJson('GET', `/v1/responses/${id}?stream=${no}`, 200)
  for (const [param, value] of [
    ['stream', 'maybe'],
    ['stream', ''],
    ['starting_after', 'x'],
    ['starting_after', '-1'],
  ]) {
    const { error } = await fetchJson('GET', `/v1/responses/${id}?${param}=${value}`, 400)
    expect(error).toMatchObject({ code: 'invalid_query', param })
  }
})

test('starting_after without stream=true is rejected by name', async () => {
  const { create, fetchJson } = await openResponses(chatAnswer('x'))
  const { id } = await create({ input: 'hi' })
  for (const query of ['starting_after=0', 'stream=false&starting_after=3']) {
    const { error } = await fetchJson('GET', `/v1/responses/${id}?${query}`, 400)
    expect(error).toMatchObject({ code: 'invalid_query', param: 'starting_after' })
    expect(error.message).toContain('stream=true')
  }
})

test('1.1: without history nothing is stored, and the response has store false', async () => {
  const { create, fetchJson } = await openResponses(chatAnswer('x'), {
    plugins: { storage: { dir: newDirectory() }, history: false },
  })
  const reply = await create({ input: 'hi' })
  expect(reply.store).toBe(false)
  await fetchJson('GET', `/v1/responses/${reply.id}`, 404)
  expect((await create({ input: 'hi', background: true }, 400)).error.code).toBe('background_not_supported')
})

test('item references count against the history limit', async () => {
  const { create } = await openResponses(chatAnswer('x'), { plugins: { history: { maxHistoryItems: 3 } } })
  const replies = [
    await create({ input: 'one' }),
    await create({ input: 'two' }),
    await create({ input: 'three' }),
  ]
  const references = replies.flatMap(({ output }) =>
    output.map(({ id }: ResponseJson) => ({ type: 'item_reference', id })),
  )
  await create({ input: [...references, { role: 'user', content: 'go' }] })
  const more = await create({ input: 'four' })
  const tooMany = [...references, { type: 'item_reference', id: more.output[0].id }]
  const refused = await create({ input: tooMany }, 400)
  expect(refused.error).toMatchObject({ code: 'invalid_value', param: 'input' })
})
