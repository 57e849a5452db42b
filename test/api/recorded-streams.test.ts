/** Streams with every event of a provider, over every client API: nothing that both formats have is lost. */
import { expect, onTestFinished, test } from 'vitest'
import { startToolServer } from '../../plugins/tools/mcp/fixtures/tool-server.ts'
import { output, responsesStream, whole } from '../fixtures/streams/responses-stream.ts'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { type Json, openResponses, RESPONSES, type Reply } from './responses/responses-fleet.ts'

const LOOPBACK = { mcp: { clientServers: { allowsPrivate: true } } }
const NATIVE_WORKER = { spec: { apis: ['responses'] } }

/** Streamed or whole, as requested. */
function answers(events: readonly Json[], reply: Json): Script {
  return (request) =>
    (request.json() as { stream?: boolean }).stream === true
      ? sseAnswer(events.map((event) => JSON.stringify(event)))
      : jsonAnswer(reply)
}

async function openNative() {
  const fleet = await openResponses(undefined, {
    workers: [NATIVE_WORKER],
    plugins: { messages: {}, ...LOOPBACK },
  })
  fleet.workers[0].script('POST /v1/responses', answers(responsesStream, whole))
  return fleet
}

async function readStream(url: string, body: Json): Promise<Reply[]> {
  const stream = openSse(url, { body: { model: 'test-model', stream: true, ...body } })
  await stream.done
  expect(stream.status, stream.text()).toBe(200)
  const last = stream.events.at(-1)?.data === '[DONE]' ? -1 : undefined
  return stream.events.slice(0, last).map(({ data }) => JSON.parse(data) as Reply)
}

/** Without what each side chooses itself: ids, numbers, sealed reasoning. */
function comparable(events: readonly Json[]): Json[] {
  const ids = new Map<unknown, string>()
  const named = (event: Reply) => {
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

function withoutOwn(item: Reply, ids?: ReadonlyMap<unknown, string>): Json {
  const { id, encrypted_content: sealed, ...rest } = JSON.parse(JSON.stringify(item)) as Reply
  const isSealed = item.type === 'reasoning' && sealed !== undefined
  return {
    ...rest,
    ...(ids !== undefined && { id: ids.get(id) }),
    ...(sealed !== undefined && { encrypted_content: isSealed ? 'sealed' : sealed }),
  }
}

/** Events that the gateway writes itself. */
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

test('beside tools of the gateway, a Responses client gets every event of a Responses worker too', async () => {
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
  // The list of the tool server has the first index.
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
  },
)
