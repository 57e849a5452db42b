/** The parse routes over a real socket. */
import { afterEach, expect, test } from 'vitest'
import { reasoningFormats } from '../../plugins/models/parsers/reasoning/reasoning-table.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { examples } from '../support/parsers/examples.ts'

const open: TestGateway[] = []
afterEach(async () => {
  for (const gateway of open.splice(0)) await gateway.stop()
})

async function start(auth: Record<string, unknown> = {}) {
  const gateway = await startGateway({ plugins: { auth, openapi: {}, parsers: {} } })
  open.push(gateway)
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return { gateway, post }
}

const CALLS = '/parse/function_call'
const REASONING = '/parse/reasoning'

test('calls have a name and arguments as a string, and no other members', async () => {
  const { post } = await start()
  for (const { format, input, text, calls, tools = [] } of examples) {
    const declared = tools.map((tool) => ({ type: 'function', function: tool }))
    const reply = await post(CALLS, { text: input, tool_call_parser: format, tools: declared })
    expect(reply.status).toBe(200)
    expect(await reply.json()).toEqual({
      remaining_text: text,
      tool_calls: calls.map(([name, written]) => ({ function: { name, arguments: written } })),
      success: true,
    })
  }
})

test('unknown parsers and invalid bodies are rejected, and an empty text has no calls', async () => {
  const { gateway, post } = await start()
  const unknown = await post(CALLS, { text: 'x', tool_call_parser: 'Qwen', tools: [] })
  expect(unknown.status).toBe(400)
  expect(await unknown.json()).toEqual({ error: 'Unknown tool parser: Qwen', success: false })
  const misspelt = await post(REASONING, { text: 'x', reasoning_parser: 'qwen3', inReasoning: true })
  expect(misspelt.status).toBe(200)
  expect(misspelt.headers.get('x-weir-warning')).toBe('members_ignored; count=1; names="inReasoning"')
  const unknownReasoning = await post(REASONING, { text: 'x', reasoning_parser: 'nope' })
  expect(unknownReasoning.status).toBe(400)
  expect(await unknownReasoning.json()).toEqual({ error: 'Unknown reasoning parser: nope', success: false })

  const missing = await post(CALLS, { text: 'x', tool_call_parser: 'qwen' })
  expect(missing.status).toBe(422)
  expect(await missing.json()).toEqual({ error: expect.stringContaining('tools'), success: false })
  expect((await post(REASONING, { text: 7, reasoning_parser: 'qwen3' })).status).toBe(422)
  expect((await post(REASONING, '{"text":')).status).toBe(400)
  expect((await post(REASONING, '{}', { 'content-type': 'text/plain' })).status).toBe(415)

  const empty = await post(CALLS, { text: '', tool_call_parser: 'qwen', tools: [] })
  expect(await empty.json()).toEqual({ remaining_text: '', tool_calls: [], success: true })
  expect((await fetch(gateway.url + CALLS)).status).toBe(405)
  expect((await fetch(gateway.url + REASONING)).status).toBe(405)
})

test('responses always have reasoning and text', async () => {
  const { post } = await start()
  const parse = async (body: object) => (await post(REASONING, body)).json()
  expect(await parse({ text: '<think>a</think> b', reasoning_parser: 'qwen3' })).toEqual({
    normal_text: ' b',
    reasoning_text: 'a',
    success: true,
  })
  expect(await parse({ text: 'a</think>b', reasoning_parser: 'qwen3', in_reasoning: true })).toEqual({
    normal_text: 'b',
    reasoning_text: 'a',
    success: true,
  })
  expect(await parse({ text: '<think>a', reasoning_parser: 'passthrough' })).toEqual({
    normal_text: '<think>a',
    reasoning_text: '',
    success: true,
  })
})

test('more than 4 MiB of reasoning are rejected by every parser but passthrough', async () => {
  const { post } = await start()
  const text = 'x'.repeat(4 * 1024 * 1024 + 1)
  const reply = await post(REASONING, { text, reasoning_parser: 'qwen3' })
  expect(reply.status).toBe(400)
  const { error, success } = (await reply.json()) as { error: string; success: boolean }
  expect(success).toBe(false)
  expect(error).toMatch(/^Failed to separate reasoning: /)
  expect(error.length).toBeLessThan(200)
  for (const { name } of reasoningFormats)
    expect([name, (await post(REASONING, { text, reasoning_parser: name })).status]).toEqual([name, 400])
  expect((await post(REASONING, { text: text.slice(1), reasoning_parser: 'qwen3' })).status).toBe(200)
  expect((await post(REASONING, { text, reasoning_parser: 'passthrough' })).status).toBe(200)
})

test('the routes require a control-plane key', async () => {
  const { post } = await start({ apiKey: 'serving-key' })
  const body = { text: '', reasoning_parser: 'qwen3' }
  expect((await post(REASONING, body)).status).toBe(401)
  expect((await post(CALLS, { text: '', tool_call_parser: 'qwen', tools: [] })).status).toBe(401)
})

test('an unknown parser in the configuration fails the boot', async () => {
  await expect(startGateway({ plugins: { auth: {}, parsers: { toolParser: 'qwne' } } })).rejects.toThrow(
    /qwne/,
  )
})
