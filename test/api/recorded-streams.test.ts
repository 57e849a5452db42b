/** Streams with every event of a provider, over every client API: content that both formats support is preserved. */
import { expect, onTestFinished, test } from 'vitest'
import { annotation, logprobs } from '../fixtures/streams/chat-stream.ts'
import { content } from '../fixtures/streams/messages-stream.ts'
import { output, responsesStream, whole } from '../fixtures/streams/responses-stream.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { nativeAnswer } from '../support/responses-script.ts'
import { sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import {
  type ChatAnswer,
  FRONTS,
  gatherMessage,
  LANES,
  openLane,
  openNative,
  readStream,
} from './recorded-fleet.ts'
import { type Json, RESPONSES, type ResponseJson } from './responses/responses-fleet.ts'

/** Events without the values that each side chooses itself: ids, numbers, sealed reasoning. */
function comparable(events: readonly Json[]): Json[] {
  const ids = new Map<unknown, string>()
  const named = (event: ResponseJson) => {
    if (event.item !== undefined) ids.set(event.item.id, `item ${event.output_index}`)
    const { sequence_number: _, item_id: id, item, ...rest } = event
    return {
      ...rest,
      ...(id !== undefined && { item_id: ids.get(id) ?? id }),
      ...(item !== undefined && { item: withoutOwn(item, ids) }),
    }
  }
  return events.map(named)
}

function withoutOwn(item: ResponseJson, ids?: ReadonlyMap<unknown, string>): Json {
  const { id, encrypted_content: sealed, ...rest } = JSON.parse(JSON.stringify(item)) as ResponseJson
  const isSealed = item.type === 'reasoning' && sealed !== undefined
  return {
    ...rest,
    ...(ids !== undefined && { id: ids.get(id) }),
    ...(sealed !== undefined && { encrypted_content: isSealed ? 'sealed' : sealed }),
  }
}

/** Events that the gateway creates itself. */
const OWN = new Set(['response.created', 'response.queued', 'response.in_progress', 'response.completed'])
const theirs = (events: readonly Json[]) => comparable(events.filter(({ type }) => !OWN.has(String(type))))

const INCLUDE = ['reasoning.encrypted_content', 'message.output_text.logprobs']
const request = { input: 'hi', include: INCLUDE, reasoning: { summary: 'auto' } }

test('a Responses client gets every event of a Responses worker, in order', async () => {
  const { gateway } = await openNative()
  const events = await readStream(gateway.url + RESPONSES, request)
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  expect(theirs(events)).toEqual(theirs(responsesStream))
})

test('with tools of the gateway, a Responses client gets every event of a Responses worker too', async () => {
  const server = await startToolServer({ echo: () => 'x' })
  onTestFinished(() => server.close())
  const { gateway } = await openNative()
  const tools = [
    { type: 'mcp', server_label: 'echoes', server_url: server.url, require_approval: 'never' },
    { type: 'function', name: 'look' },
  ]
  const events = await readStream(gateway.url + RESPONSES, { ...request, tools })
  const [first, ...rest] = events.at(-1).response.output
  expect(first.type).toBe('mcp_list_tools')
  expect(rest.map((item: Json) => withoutOwn(item))).toEqual(output.map((item) => withoutOwn(item)))
  // The tool list of the server has index 0.
  const shifted = events
    .filter(({ output_index: index }) => index !== 0)
    .map((event) => ('output_index' in event ? { ...event, output_index: event.output_index - 1 } : event))
  expect(theirs(shifted)).toEqual(theirs(responsesStream))
})

test.each([{ stream: true }, { stream: false }])(
  'items of a Responses worker are complete, also when stored (%j)',
  async ({ stream }) => {
    const { gateway, create, fetchJson } = await openNative()
    const reply = stream
      ? (await readStream(gateway.url + RESPONSES, request)).at(-1).response
      : await create(request)
    const expected = output.map((item) => withoutOwn(item))
    expect(reply.output.map((item: Json) => withoutOwn(item))).toEqual(expected)
    expect(reply.usage).toEqual(whole.usage)
    const stored = await fetchJson('GET', `${RESPONSES}/${reply.id}?include[]=reasoning.encrypted_content`)
    expect(stored.output).toEqual(reply.output)
    const replayed = openSse(`${gateway.url}${RESPONSES}/${reply.id}?stream=true`, { method: 'GET' })
    await replayed.done
    expect(replayed.text()).not.toContain('undefined')
    const ended = replayed.events.filter(({ event }) => event === 'response.output_item.done')
    expect(ended.map(({ data }) => JSON.parse(data).item)).toEqual(stored.output)
  },
)

/** In place of the image of the recorded answer. */
const IMAGE_NOTE = '[The model made an image, which this format cannot hold.]'

/** Ids that a Messages client accepts; inputs are parsed. */
function inMessages({ text, reasoning, refusal, calls, usage }: ChatAnswer): ChatAnswer {
  const own = calls.map(([id, name, args]) => [ofCall(id), name, JSON.stringify(JSON.parse(args))] as const)
  return { text: text + refusal, reasoning, refusal: '', calls: own, usage }
}

const ofCall = (id: string) => (id.startsWith('toolu_') ? id : `toolu_${id}`)

const pairs = Object.keys(LANES).flatMap((lane) =>
  Object.keys(FRONTS).flatMap((front) => [true, false].map((stream) => ({ lane, front, stream }))),
) as { lane: keyof typeof LANES; front: keyof typeof FRONTS; stream: boolean }[]

test.each(pairs)(
  'a $front client of a $lane worker gets all content that both formats support (stream: $stream)',
  async ({ lane, front, stream }) => {
    const { said } = LANES[lane]
    const { path, body, ofStream, ofResponse } = FRONTS[front]
    const { gateway, post } = await openLane(LANES[lane])
    const shown = lane === 'responses' ? { ...said, text: said.text + IMAGE_NOTE } : said
    const expected = front === 'messages' ? inMessages(shown) : said
    const options = front === 'chat' && { stream_options: { include_usage: true } }
    if (stream)
      expect(ofStream(await readStream(gateway.url + path, { ...body, ...options }))).toEqual(expected)
    else {
      const reply = ofResponse(await (await post(path, { model: 'test-model', ...body })).json())
      // A non-streamed message has inputs as objects, not as the model's text.
      expect(lane === 'messages' ? inMessages(reply) : reply).toEqual(
        lane === 'messages' ? inMessages(said) : expected,
      )
    }
  },
)

test("chunks and events reach a client of the worker's own format byte for byte", async () => {
  for (const front of ['chat', 'messages'] as const) {
    const { gateway } = await openLane(LANES[front])
    const { path, body } = FRONTS[front]
    // Without this, the gateway removes the usage of a chat.
    const options = front === 'chat' ? { stream_options: { include_usage: true } } : {}
    expect(await readStream(gateway.url + path, { ...body, ...options })).toEqual(LANES[front].events)
  }
})

test.each([true, false])(
  "log probabilities and sources are translated into the client's format (stream: %s)",
  async (stream) => {
    const ask = async (lane: 'chat' | 'responses', front: 'chat' | 'responses', more: Json) => {
      const { gateway, post } = await openLane(LANES[lane])
      const { path, body } = FRONTS[front]
      const sent = { ...body, ...more, stream, model: 'test-model' }
      return stream
        ? readStream(gateway.url + path, sent)
        : ((await (await post(path, sent)).json()) as ResponseJson)
    }
    const flat = { type: 'url_citation', ...annotation.url_citation }
    const ofResponse = await ask('chat', 'responses', { include: INCLUDE })
    const { output: items } = stream ? ofResponse.at(-1).response : ofResponse
    const message = items.find(({ type }: ResponseJson) => type === 'message')
    expect(message.content[0]).toMatchObject({ annotations: [flat], logprobs })
    const ofChat = await ask('responses', 'chat', { logprobs: true, top_logprobs: 1 })
    const choices = stream ? ofChat.flatMap((chunk: ResponseJson) => chunk.choices) : ofChat.choices
    const gathered = (read: (choice: ResponseJson) => unknown) =>
      choices.flatMap((one: ResponseJson) => read(one) ?? [])
    const [{ logprobs: ofPart }] = output[1].content as ResponseJson[]
    expect(gathered(({ logprobs: found }) => found?.content)).toEqual(ofPart)
    const found = gathered(({ delta, message: whole }) => (delta ?? whole).annotations)
    expect(found.slice(0, 2)).toEqual([
      annotation,
      { type: 'file_citation', file_id: 'file_1', filename: 'a.txt', index: 2 },
    ])
    expect(found).toHaveLength(4)
  },
)

test('with tools of the gateway, a Messages client gets every block of a Messages worker', async () => {
  const server = await startToolServer({ echo: () => 'x' })
  onTestFinished(() => server.close())
  const { gateway, post } = await openLane(LANES.messages)
  const { path, body } = FRONTS.messages
  const sent = {
    ...body,
    model: 'test-model',
    mcp_servers: [{ type: 'url', name: 'echoes', url: server.url }],
    tools: [...body.tools, { type: 'mcp_toolset', mcp_server_name: 'echoes' }],
  }
  const headers = { 'x-weir-mcp': 'enabled' }
  const whole = (await (await post(path, sent, headers)).json()) as ResponseJson
  expect(whole.content).toEqual(content)
  const stream = openSse(gateway.url + path, { body: { ...sent, stream: true }, headers })
  await stream.done
  const events = stream.events.map(({ data }) => JSON.parse(data) as ResponseJson)
  expect(gatherMessage(events).content).toEqual(content)
})

test('a tool round of a Responses worker is sent back to it unchanged', async () => {
  const server = await startToolServer({ echo: () => 'ran' })
  onTestFinished(() => server.close())
  const { create, workers } = await openNative()
  const round = [
    { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'FIRST' },
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      phase: 'commentary',
      status: 'completed',
      content: [
        { type: 'output_text', text: 'a', annotations: [], logprobs: [] },
        { type: 'output_text', text: 'b', annotations: [], logprobs: [] },
      ],
    },
    { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } },
    { id: 'rs_2', type: 'reasoning', summary: [], encrypted_content: 'SECOND' },
    {
      id: 'fc_1',
      type: 'function_call',
      status: 'completed',
      call_id: 'c1',
      name: 'echo',
      arguments: '{}',
      caller: { type: 'direct' },
    },
  ]
  const route = 'POST /v1/responses'
  workers[0].once(route, nativeAnswer({ output: round }))
  workers[0].once(route, nativeAnswer('done'))
  const tools = [{ type: 'mcp', server_label: 'echoes', server_url: server.url, require_approval: 'never' }]
  await create({ input: 'hi', tools })
  const [, second] = workers[0].requestsTo(route).map((one) => one.json() as ResponseJson)
  const bare = ({ id, status, ...item }: Json) =>
    item.type === 'web_search_call' ? { id, status, ...item } : item
  expect(second.input.slice(1)).toEqual([
    ...round.map(bare),
    { type: 'function_call_output', call_id: 'c1', output: 'ran' },
  ])
})

test('event types and members of a worker cannot break the stream', async () => {
  const { stream, workers } = await openNative()
  const item = { id: 'x_1', type: 'odd_call', _private: 1 }
  const events = [
    { type: 'response.created', response: { id: 'r', model: 'm', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.odd_call.a\ndata: {"type":"response.completed"}\n\n', output_index: 0 },
    { type: 'response.odd_call.ok', output_index: 0, item_id: 'x_1', sequence_number: 'x', said: 'a\n\nb' },
    { type: `response.${'x'.repeat(1_000)}` },
    { type: 'response.odd_call.other', output_index: 7, item_id: 'x_9' },
    { type: ['response.odd_call'], output_index: 0 },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.odd_call.late', output_index: 0, item_id: 'x_1' },
    { type: 'response.output_item.added', output_index: 1, item: { id: 'h', type: '_hidden_call' } },
    { type: 'response._hidden_call.in_progress', output_index: 1, item_id: 'h' },
    { type: 'response.completed', response: { id: 'r', status: 'completed', output: [item] } },
  ]
  workers[0].script('POST /v1/responses', sseAnswer(events.map((event) => JSON.stringify(event))))
  const { events: sent, response } = await stream({ input: 'hi' })
  expect(sent.filter(({ type }) => String(type).includes('odd_call'))).toMatchObject([
    { type: 'response.odd_call.ok', output_index: 0, item_id: response.output[0].id, said: 'a\n\nb' },
  ])
  expect(response.output).toEqual([{ id: expect.any(String), type: 'odd_call' }])
})

test('items sent back by the client or the store keep the members that only a Responses worker knows', async () => {
  const { create, workers } = await openNative()
  const reply = await create(request)
  const result = { type: 'function_call_output', call_id: 'call_8', output: 'x', caller: { type: 'program' } }
  const kinds = ['message', 'function_call']
  const sent = reply.output.filter(
    ({ type, content }: ResponseJson) => kinds.includes(type) && content?.length !== 3,
  )
  await create({ input: [{ role: 'user', content: 'hi' }, ...sent, result] })
  const patched = { type: 'custom_tool_call_output', call_id: 'call_2', output: 'ok' }
  await create({ previous_response_id: reply.id, input: [patched, result] })
  const [, echoed, chained] = workers[0]
    .requestsTo('POST /v1/responses')
    .map((one) => one.json() as ResponseJson)
  const of = (items: readonly ResponseJson[]) => items.filter(({ type }) => kinds.includes(type))
  const bare = ({ id: _, status: __, ...item }: ResponseJson) => item
  expect(echoed.input.slice(1)).toEqual([...sent.map(bare), result])
  expect(of(chained.input).slice(1)).toEqual(of(output).map(bare))
  expect(chained.input.at(-1)).toEqual(result)
})
