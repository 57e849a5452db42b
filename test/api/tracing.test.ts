/** Traces as received by a collector: client, gateway and worker in one trace. */
import { afterEach, expect, test } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { openHooked } from '../support/hooked-gateway.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { type CollectedSpan, startOtlpCollector } from '../support/otlp-collector.ts'
import {
  dropAnswer,
  jsonAnswer,
  type Script,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { staticWorkers } from '../support/static-workers.ts'
import { CHAT, chatAnswer, openResponses } from './responses/responses-fleet.ts'

const ECHO = 'POST /echo'
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

async function open(answer: Script, tracing: Record<string, unknown> = {}) {
  const collector = await startOtlpCollector()
  cleanups.push(() => collector.close())
  const hooked = await openHooked(() => {}, {
    answer,
    kernel: { retry: { maxAttempts: 1 } },
    plugins: { auth: {}, chat: {}, tracing: { endpoint: collector.url, intervalMs: 20, ...tracing } },
  })
  cleanups.push(() => hooked.close())
  hooked.worker.script('POST /v1/chat/completions', answer)
  const chat = (headers: Record<string, string> = {}) =>
    fetch(`${hooked.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a secret' }] }),
    })
  const find = (kind: number) => collector.spans.find((span) => span.kind === kind) as CollectedSpan
  return { collector, hooked, chat, find }
}

test('client, gateway and worker share one trace, each the child of the previous', async () => {
  const { collector, hooked, chat, find } = await open(sseAnswer(['1', '2', '[DONE]']))
  const reply = await chat({ traceparent: `00-${TRACE}-${CALLER}-01`, 'x-request-id': 'mine' })
  expect(await reply.text()).toContain('[DONE]')
  await expect.poll(() => collector.spans.length).toBe(2)
  const server = find(2)
  const upstream = find(3)
  expect(server).toMatchObject({ traceId: TRACE, parentSpanId: CALLER, name: 'POST /v1/chat/completions' })
  expect(upstream).toMatchObject({ traceId: TRACE, parentSpanId: server.spanId })
  expect(server.attributes).toMatchObject({
    'http.response.status_code': 200,
    'weir.request_id': 'mine',
    'client.address': '127.0.0.1',
  })
  expect(upstream.attributes).toMatchObject({
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(hooked.worker.url).port),
    'weir.worker_url': hooked.worker.url,
    'gen_ai.request.model': 'm',
  })
  expect(server.attributes).toMatchObject({ 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' })
  const [request] = hooked.worker.requestsTo('POST /v1/chat/completions')
  const sent = request.rawHeaders.filter(([name]) => name.toLowerCase() === 'traceparent')
  expect(sent.map(([, value]) => value)).toEqual([`00-${TRACE}-${upstream.spanId}-01`])
  expect(server.startMs).toBeLessThanOrEqual(upstream.startMs)
  expect(upstream.endMs).toBeLessThanOrEqual(server.endMs)
  expect(JSON.stringify(collector.spans)).not.toContain('a secret')
})

test('long names from clients are truncated', async () => {
  const { collector, chat, find } = await open(jsonAnswer({}))
  await chat({ 'x-request-id': 'i'.repeat(5_000) })
  await expect.poll(() => collector.spans.length).toBe(2)
  expect(find(2).attributes['weir.request_id']).toBe('i'.repeat(1_024))
})

test('an unsampled caller produces no spans, and the worker receives the flag', async () => {
  const { collector, hooked, chat } = await open(jsonAnswer({}))
  await chat({ traceparent: `00-${TRACE}-${CALLER}-00` })
  await chat()
  await expect.poll(() => collector.spans.length).toBe(2)
  expect(collector.spans.every(({ traceId }) => traceId !== TRACE)).toBe(true)
  const [first] = hooked.worker.requestsTo('POST /v1/chat/completions')
  expect(first.header('traceparent')).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
})

test('a failed request is an error with its code', async () => {
  const { collector, chat, find } = await open(dropAnswer())
  expect((await chat()).status).toBe(502)
  await expect.poll(() => collector.spans.length).toBe(2)
  expect(find(2)).toMatchObject({
    statusCode: 2,
    attributes: { 'error.type': 'call_upstream_request_error', 'http.response.status_code': 502 },
  })
})

test('an unreachable collector has no effect on requests or the shutdown', async () => {
  const { chat } = await open(jsonAnswer({ fine: true }), {
    endpoint: 'http://127.0.0.1:9/v1/traces',
    exportTimeoutMs: 100,
  })
  for (let i = 0; i < 3; i++) expect((await chat()).status).toBe(200)
})

test('spans that a collector does not accept are counted', async () => {
  const { chat, hooked } = await open(jsonAnswer({ fine: true }), {
    endpoint: 'http://127.0.0.1:9/v1/traces',
  })
  expect((await chat()).status).toBe(200)
  const counted = async () => {
    const page = await (await fetch(hooked.gateway.metricsUrl as string)).text()
    return page.match(/^weir_tracing_\w+ \d+$/gm)?.sort()
  }
  await expect
    .poll(counted)
    .toEqual([
      expect.stringMatching(/^weir_tracing_export_failures_total [12]$/),
      'weir_tracing_lost_spans_total 2',
    ])
})

test('queued spans are sent at shutdown', async () => {
  const { collector, hooked, chat } = await open(jsonAnswer({}), { intervalMs: 600_000 })
  await chat()
  expect(collector.spans).toEqual([])
  await hooked.gateway.stop()
  expect(collector.spans).toHaveLength(2)
})

test('each worker of a pair has its own span and receives its id', async () => {
  const collector = await startOtlpCollector()
  cleanups.push(() => collector.close())
  const workers = await Promise.all(
    [200, 201].map(async (status) => (await startScriptedWorker()).script(ECHO, jsonAnswer({}, { status }))),
  )
  for (const worker of workers) cleanups.push(() => worker.close())
  const [prefill, decode] = workers.map(({ url }) => url)
  const table = staticWorkers([
    { url: prefill, workerType: 'prefill', bootstrapPort: 9_000 },
    { url: decode, workerType: 'decode' },
  ])
  const gateway = await startGateway({
    own: [table.plugin],
    plugins: { auth: {}, pairs: {}, tracing: { endpoint: collector.url, intervalMs: 20 } },
  })
  cleanups.push(() => gateway.stop())
  await fetch(`${gateway.url}/relay`, { method: 'POST', body: '{"model":"m"}' })
  await expect.poll(() => collector.spans.length).toBe(3)
  const spanOf = (url: string) =>
    collector.spans.find(({ attributes }) => attributes['weir.worker_url'] === url) as CollectedSpan
  expect([prefill, decode].map((url) => spanOf(url).attributes['http.response.status_code'])).toEqual([
    200, 201,
  ])
  expect([prefill, decode].map((url) => spanOf(url).statusCode)).toEqual([0, 0])
  for (const worker of workers) {
    const [request] = worker.requestsTo(ECHO)
    expect(request.header('traceparent')).toContain(spanOf(worker.url).spanId)
  }
})

test('token usage of a generation is in its span and in the metrics', async () => {
  const collector = await startOtlpCollector()
  cleanups.push(() => collector.close())
  const { stream, workers, gateway } = await openResponses(undefined, {
    plugins: { tracing: { endpoint: collector.url, intervalMs: 20 } },
  })
  workers[0].once(CHAT, chatAnswer('one two three'))
  await stream({ input: 'go' })
  await expect.poll(() => collector.spans.length).toBe(2)
  const root = collector.spans.find(({ kind }) => kind === 2) as CollectedSpan
  const input = root.attributes['gen_ai.usage.input_tokens']
  const output = root.attributes['gen_ai.usage.output_tokens']
  expect(root.attributes['gen_ai.operation.name']).toBe('chat')
  expect([Number(input) > 0, Number(output) > 1]).toEqual([true, true])
  const page = await (await fetch(gateway.metricsUrl as string)).text()
  const labels = 'router_type="http",backend_type="regular",model="test-model",endpoint="responses"'
  expect(page).toContain(`weir_router_tokens_total{${labels},token_type="input"} ${input}\n`)
  expect(page).toContain(`weir_router_tokens_total{${labels},token_type="output"} ${output}\n`)
  expect(page).toContain(`weir_router_tpot_seconds_count{${labels}} 1\n`)
})

test('a tool call run by the gateway has a child span with its status', async () => {
  const collector = await startOtlpCollector()
  const server = await startToolServer({
    look: () => 'fine',
    break: () => ({ isError: true, content: [{ type: 'text', text: 'a secret' }] }),
  })
  cleanups.push(
    () => collector.close(),
    () => server.close(),
  )
  const { create, workers } = await openResponses(undefined, {
    plugins: {
      mcp: { servers: [{ label: 'tools', url: server.url }] },
      tracing: { endpoint: collector.url, intervalMs: 20 },
    },
  })
  const call = (name: string) => ({ id: name, name, arguments: '{}' })
  workers[0].once(CHAT, chatAnswer({ tool_calls: [call('look'), call('break')] }))
  workers[0].once(CHAT, chatAnswer('done'))
  await create({ input: 'go', tools: [{ type: 'mcp', server_label: 'tools', require_approval: 'never' }] })
  await expect.poll(() => collector.spans.length).toBe(5)
  const root = collector.spans.find(({ kind }) => kind === 2) as CollectedSpan
  const tools = collector.spans.filter(({ kind }) => kind === 1)
  expect(tools.map(({ name, statusCode }) => [name, statusCode]).sort()).toEqual([
    ['execute_tool break', 2],
    ['execute_tool look', 0],
  ])
  for (const { parentSpanId, traceId, attributes } of tools) {
    expect([parentSpanId, traceId]).toEqual([root.spanId, root.traceId])
    expect(attributes).toMatchObject({ 'gen_ai.operation.name': 'execute_tool', 'weir.tool_server': 'tools' })
  }
  expect(JSON.stringify(collector.spans)).not.toContain('a secret')
})
