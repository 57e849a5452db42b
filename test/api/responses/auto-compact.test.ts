/** Compaction of a history that exceeds the context of the model or the threshold of the client. */
import { afterEach, expect, test } from 'vitest'
import { startToolServer } from '../../support/mcp/tool-server.ts'
import { checkResponseEvents } from '../../support/response-events.ts'
import { NATIVE, nativeAnswer } from '../../support/responses-script.ts'
import type { RecordedRequest } from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import { type Answer, jsonAnswer } from '../../support/worker-answer.ts'
import type { FleetOptions } from '../fleet.ts'
import { chatAnswer, openResponses, RESPONSES, type ResponseJson } from './responses-fleet.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const LONG = 'many words of no great weight '.repeat(40)
const withContext = (context_length: number): FleetOptions => ({
  workers: [{ spec: { models: [{ id: 'test-model', context_length }] } }],
})

/** Returns a summary for a summary request, an answer otherwise. */
async function open(options: FleetOptions = {}) {
  const fleet = await openResponses((request) => {
    const { messages } = request.json() as ResponseJson
    const isTask = String(messages.at(-1).content).includes('Summarise')
    const script = chatAnswer(isTask ? 'they spoke of cats' : 'fine')
    return typeof script === 'function' ? script(request) : script
  }, options)
  const textsOf = (index: number) =>
    fleet
      .asked()
      .at(index)
      .messages.map(({ content }: ResponseJson) => content)
  return { ...fleet, textsOf }
}

const compacting = { context_management: [{ type: 'compaction', compact_threshold: 100 }] }

test('above the threshold the history becomes a summary, the first item of the output', async () => {
  const fleet = await open()
  const first = await fleet.create({ input: `cats ${LONG}`, ...compacting })
  expect(first.output.map(({ type }: ResponseJson) => type)).toEqual(['message'])
  const { response, events } = await fleet.stream({
    input: 'and dogs?',
    previous_response_id: first.id,
    ...compacting,
  })
  expect(response.output.map(({ type }) => type)).toEqual(['compaction', 'message'])
  expect(response.output[0]).toEqual({
    id: expect.stringMatching(/^cmp_/),
    type: 'compaction',
    encrypted_content: expect.any(String),
  })
  expect(response.usage).toMatchObject({ input_tokens: 20, output_tokens: 10 })
  expect(JSON.stringify(events)).not.toContain('they spoke of cats')
  expect(fleet.asked()).toHaveLength(3)
  expect(fleet.textsOf(1)).toEqual([`cats ${LONG}`, 'fine', expect.stringContaining('Summarise')])
  const joined = expect.stringMatching(/they spoke of cats\n\nand dogs\?$/)
  expect(fleet.textsOf(2)).toEqual([joined])
  expect(await fleet.fetchJson('GET', `${RESPONSES}/${response.id}`)).toEqual(response)

  // Later turns, by previous id or by the client's own copy, have the summary and the items after it.
  await fleet.create({ input: 'more', previous_response_id: response.id as string })
  expect(fleet.textsOf(-1)).toEqual([joined, 'fine', 'more'])
  await fleet.create({ input: [...response.output, { role: 'user', content: 'more' }], store: false })
  expect(fleet.textsOf(-1)).toEqual([expect.stringMatching(/they spoke of cats$/), 'fine', 'more'])
})

test("truncation auto compacts a history beyond the model's context; otherwise the worker decides", async () => {
  const fleet = await open(withContext(400))
  const input = [
    { role: 'user', content: LONG },
    { role: 'assistant', content: LONG },
    { role: 'user', content: 'and now?' },
  ]
  expect((await fleet.create({ input })).output).toHaveLength(1)
  expect(fleet.textsOf(-1)).toHaveLength(3)
  const reply = await fleet.create({ input, truncation: 'auto', store: false })
  expect([reply.truncation, reply.output.map(({ type }: ResponseJson) => type)]).toEqual([
    'auto',
    ['compaction', 'message'],
  ])
  // The history was too long for one summary: the second one summarises the first and the rest.
  expect(fleet.asked()).toHaveLength(4)
  expect(fleet.textsOf(2)).toEqual([
    expect.stringContaining('Summary so far'),
    LONG,
    expect.stringContaining('Summarise'),
  ])
  expect(fleet.textsOf(3)).toEqual([expect.stringMatching(/they spoke of cats\n\nand now\?$/)])
})

test('a turn in progress is not compacted, and an invalid context_management is rejected by field', async () => {
  const fleet = await open()
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
  const input = [
    { role: 'user', content: LONG },
    call,
    { type: 'function_call_output', call_id: 'c', output: LONG },
  ]
  expect((await fleet.create({ input, ...compacting })).output).toHaveLength(1)
  expect(fleet.asked()).toHaveLength(1)
  for (const context_management of [['x'], [{ type: 'compaction', compact_threshold: 'x' }]]) {
    const { error } = await fleet.create({ input: 'hi', context_management }, 400)
    expect(error.param).toMatch(/^context_management\[0\]/)
  }
})

test('compaction works in a conversation, in the background, over a Responses worker', async () => {
  const fleet = await openResponses(undefined, {
    workers: [{ spec: { apis: ['responses'] } }],
    plugins: { conversations: {} },
  })
  const bodies: ResponseJson[] = []
  fleet.workers[0].script(NATIVE, (request) => {
    const body = request.json() as ResponseJson
    bodies.push(body)
    const said = JSON.stringify(body.input.at(-1)).includes('Summarise') ? 'they spoke of cats' : 'fine'
    const script = nativeAnswer(said)
    return typeof script === 'function' ? script(request) : script
  })
  const { id: conversation } = (await (await fleet.post('/v1/conversations', {})).json()) as ResponseJson
  await fleet.create({ input: LONG, conversation })
  const queued = await fleet.create({ input: 'and now?', conversation, background: true, ...compacting })
  const path = `${RESPONSES}/${queued.id}`
  await expect.poll(async () => (await fleet.fetchJson('GET', path)).status).toBe('completed')
  expect((await fleet.fetchJson('GET', path)).output[0].type).toBe('compaction')
  expect(bodies[2].context_management).toBe(undefined)
  expect(bodies[2].input).toHaveLength(2)
  expect(JSON.stringify(bodies[2].input[0])).toContain('they spoke of cats')
  await fleet.create({ input: 'more', conversation })
  expect(bodies[3].input).toHaveLength(4)
  expect(JSON.stringify(bodies[3])).not.toContain('many words')
})

test('a stream sends comments during compaction, and a failure then ends it with an error event', async () => {
  let held = Promise.withResolvers<boolean>()
  const plain = chatAnswer('fine') as (request: RecordedRequest) => Answer
  const fleet = await openResponses(
    async (request) => {
      const { messages } = request.json() as ResponseJson
      if (!String(messages.at(-1).content).includes('Summarise')) return plain(request)
      return (await held.promise) ? plain(request) : jsonAnswer({ error: { message: 'no' } }, { status: 400 })
    },
    { plugins: { responses: { streamOpensAfterMs: 20 } } },
  )
  const input = [
    { role: 'user', content: LONG },
    { role: 'user', content: 'and now?' },
  ]
  const run = async (works: boolean) => {
    const body = { model: 'test-model', stream: true, input, seed: 1, ...compacting }
    const stream = openSse(fleet.gateway.url + RESPONSES, { body })
    await expect.poll(() => stream.comments.join()).toContain('preparing')
    expect(stream.events).toEqual([])
    held.resolve(works)
    await stream.done
    held = Promise.withResolvers()
    return stream
  }
  const done = await run(true)
  const { response } = checkResponseEvents(done.events)
  expect(response.output.map(({ type }) => type)).toEqual(['compaction', 'message'])
  // The head was sent before the request was known.
  expect(done.comments.at(-1)).toContain('x-weir-warning members_ignored; count=1; names="seed"')
  const failed = await run(false)
  expect(failed.status).toBe(200)
  expect(failed.events.map(({ event, data }) => event || data)).toEqual(['error', '[DONE]'])
  expect(JSON.parse(failed.events[0].data)).toMatchObject({
    type: 'error',
    sequence_number: 0,
    code: 'upstream_invalid_request',
  })
})

test('a worker error after compaction ends the stream with a failure', async () => {
  const held = Promise.withResolvers<void>()
  const plain = chatAnswer('they spoke of cats') as (request: RecordedRequest) => Answer
  const fleet = await openResponses(
    async (request) => {
      const { messages } = request.json() as ResponseJson
      const isTask = String(messages.at(-1).content).includes('Summarise')
      if (!isTask) return jsonAnswer({ error: { message: 'no' } }, { status: 400 })
      await held.promise
      return plain(request)
    },
    { plugins: { responses: { streamOpensAfterMs: 20 } } },
  )
  const input = [
    { role: 'user', content: LONG },
    { role: 'user', content: 'and now?' },
  ]
  const body = { model: 'test-model', stream: true, input, ...compacting }
  const stream = openSse(fleet.gateway.url + RESPONSES, { body })
  await expect.poll(() => stream.comments.join()).toContain('preparing')
  held.resolve()
  await stream.done
  const { types, response } = checkResponseEvents(stream.events)
  expect(types.slice(-2)).toEqual(['error', 'response.failed'])
  expect(response.error).toMatchObject({ code: 'upstream_invalid_request' })
})

test('a summary precedes the listed tools, and is kept if listing fails', async () => {
  const server = await startToolServer({ echo: ({ text }) => `you said ${text}` })
  ends.push(() => server.close())
  const fleet = await open({ plugins: { mcp: { clientServers: { allowsPrivate: true } } } })
  const mcp = { type: 'mcp', server_label: 'echoes', server_url: server.url, require_approval: 'never' }
  const input = [
    { role: 'user', content: LONG },
    { role: 'user', content: 'and now?' },
  ]
  const body = { input, tools: [mcp], ...compacting }
  const kinds = (reply: ResponseJson) => reply.output.map(({ type }: ResponseJson) => type)
  const { response, events } = await fleet.stream(body)
  expect(kinds(response)).toEqual(['compaction', 'mcp_list_tools', 'message'])
  const added = events.filter(({ type }) => type === 'response.output_item.added')
  expect(added.map(({ output_index }) => output_index)).toEqual([0, 1, 2])
  expect(kinds(await fleet.create(body))).toEqual(['compaction', 'mcp_list_tools', 'message'])
  const gone = { ...mcp, server_url: 'http://127.0.0.1:9/mcp' }
  const failed = await fleet.stream({ ...body, tools: [gone] })
  expect(kinds(failed.response)).toEqual(['compaction', 'mcp_list_tools'])
})
