/** Hostile responses of HTTP workers through every adapter: status, headers, framing, events, JSON. */
import { startByteWorker, WELL_CHAT, wholeResponse } from './byte-worker.ts'
import { type FuzzCase, type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { HttpLane, isInternal } from './http-lane.ts'
import { type Draw, type Json, mutate, mutateJson, pickOf } from './mutate.ts'

const LANES = 16
const USER = [{ role: 'user', content: 'hi' }]
const USAGE = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
const chunk = (delta: Json, finish_reason: string | null = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})
const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
const item = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'hi', annotations: [] }],
}
const callItem = {
  id: 'fc_1',
  type: 'function_call',
  status: 'completed',
  call_id: 'call_1',
  name: 'f',
  arguments: '{"a":1}',
}
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'r',
  status: 'completed',
  output: [item, callItem],
  usage: USAGE,
}
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'a',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: USAGE,
}

/** By the API that the worker of the model with this name takes: a whole answer, and the events of a streamed one. */
const ANSWERS: Record<string, { whole: readonly Json[]; events: readonly Json[] }> = {
  chat: {
    whole: [
      WELL_CHAT,
      {
        ...WELL_CHAT,
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: null, reasoning_content: 'r', tool_calls: [call] },
            finish_reason: 'tool_calls',
          },
        ],
      },
    ],
    events: [
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'r' }),
      chunk({ content: 'hi' }),
      chunk({ tool_calls: [call] }),
      chunk({}, 'stop'),
      { ...chunk({}), choices: [], usage: WELL_CHAT.usage },
    ],
  },
  responses: {
    whole: [response],
    events: [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, content: [], status: 'in_progress' },
      },
      {
        type: 'response.content_part.added',
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        part: { type: 'output_text', text: '' },
      },
      {
        type: 'response.output_text.delta',
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        delta: 'hi',
      },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.output_item.added', output_index: 1, item: { ...callItem, arguments: '' } },
      { type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 1, delta: '{"a":1}' },
      { type: 'response.output_item.done', output_index: 1, item: callItem },
      { type: 'response.completed', response },
    ].map((event, sequence_number) => ({ ...event, sequence_number })),
  },
  messages: {
    whole: [message],
    events: [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'thinking', thinking: '', signature: '' },
      },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'r' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
      },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"a":1}' } },
      { type: 'content_block_stop', index: 1 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: USAGE },
      { type: 'message_stop' },
    ],
  },
  embeddings: {
    whole: [
      {
        object: 'list',
        model: 'm',
        data: [{ index: 0, object: 'embedding', embedding: [0.1, 1] }],
        usage: USAGE,
      },
      { data: [{ index: 0, label: 'a', probs: [1] }] },
      [{ score: 1, index: 0, document: 'a' }] as unknown as Json,
    ],
    events: [chunk({})],
  },
}
const REPORTS = [
  '# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{model="m"} 3\nsglang:token_usage 0.5\n',
  JSON.stringify({
    loads: [{ dp_rank: 0, num_running_reqs: 1, num_waiting_reqs: 0, num_used_tokens: 9, token_usage: 0.1 }],
    timestamp: 'x',
  }),
  JSON.stringify({
    object: 'list',
    data: [{ id: 'm', object: 'model', owned_by: 'sglang', max_model_len: 4096 }],
  }),
  JSON.stringify({ model_path: '/m', tokenizer_path: '/m', max_total_num_tokens: 1, version: '1' }),
]
const REPORT_ROUTES = [
  '/engine_metrics',
  '/get_loads',
  '/v1/models',
  '/get_server_info',
  '/get_model_info',
  '/health_generate',
]
const TOOL = { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } }

/** Route, body, and the API of the worker. */
const REQUESTS: readonly (readonly [path: string, body: Json, api: string])[] = [
  ['/v1/chat/completions', { messages: USER, tools: [{ type: 'function', function: TOOL }] }, 'chat'],
  ['/v1/completions', { prompt: 'hi' }, 'chat'],
  ['/generate', { text: 'hi' }, 'chat'],
  ['/v1/responses', { input: 'hi', tools: [{ type: 'function', ...TOOL }] }, 'chat'],
  [
    '/v1/messages',
    { messages: USER, max_tokens: 9, tools: [{ name: 'f', input_schema: TOOL.parameters }] },
    'chat',
  ],
  ['/v1/responses', { input: 'hi', store: false }, 'responses'],
  ['/v1/chat/completions', { messages: USER }, 'responses'],
  ['/v1/messages', { messages: USER, max_tokens: 9 }, 'responses'],
  ['/v1/messages', { messages: USER, max_tokens: 9 }, 'messages'],
  ['/v1/messages/count_tokens', { messages: USER }, 'messages'],
  ['/v1/chat/completions', { messages: USER }, 'messages'],
  ['/v1/responses', { input: 'hi' }, 'messages'],
  ['/v1/embeddings', { input: 'a' }, 'embeddings'],
  ['/v1/classify', { input: 'a' }, 'embeddings'],
  ['/v1/rerank', { query: 'a', documents: ['a', 'b'] }, 'embeddings'],
]

export const workers: Suite = { lanes: LANES, count: 4_000, start }

async function start(): Promise<Target> {
  /** By lane, whose number the gateway forwards as the request id; reports have none. */
  const responses = new Map<string, readonly Buffer[]>()
  let report: readonly Buffer[] | null = null
  const respond = (head: string) => {
    const lane = /x-request-id: fuzz-(\d+)/i.exec(head)?.[1]
    return lane === undefined ? report : (responses.get(lane) ?? report)
  }
  const apis = Object.keys(ANSWERS)
  const servers = await Promise.all(apis.map(() => startByteWorker(respond)))
  const gateway = await startFuzzed({
    plugins: { messages: {}, responses: {}, generations: {} },
    workers: servers.map(({ url }, index) => ({
      url,
      models: [{ id: apis[index] }],
      runtime_type: 'sglang',
      // Those of embeddings take everything, as an engine would.
      ...(apis[index] !== 'embeddings' && {
        apis: apis[index] === 'chat' ? ['chat', 'completions', 'generate'] : [apis[index]],
      }),
    })),
  })
  const lanes = Array.from({ length: LANES }, () => new HttpLane(gateway.port))
  return {
    gateway,
    make: makeCase,
    run: async ({ label, parts }, number): Promise<Outcome> => {
      const lane = lanes[number]
      const [path, body] = label.split(' ')
      if (body === undefined) report = parts
      else responses.set(String(number), parts)
      const head = `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-request-id: fuzz-${number}\r\n`
      const reply = await lane.send(head, Buffer.from(body ?? ''))
      responses.delete(String(number))
      const isBad = ['silent', 'malformed'].includes(reply.ending) || isInternal(reply)
      const fault = isBad ? `${reply.ending}: ${reply.head}${reply.body.slice(-800)}` : undefined
      return { ending: reply.ending === 'whole' ? String(reply.status) : reply.ending, fault }
    },
    close: () => {
      for (const lane of lanes) lane.close()
      for (const server of servers) server.close()
    },
  }
}

function makeCase(draw: Draw): FuzzCase {
  if (draw(12) === 0) {
    const all = REPORTS.map((text) => wholeResponse(text, pickOf(['application/json', 'text/plain'], draw)))
    return { label: pickOf(REPORT_ROUTES, draw), parts: [mutate(pickOf(all, draw), all, draw)] }
  }
  const [path, body, api] = pickOf(REQUESTS, draw)
  const isStream = draw(3) > 0
  // No blanks: the label is split there.
  const label = `${path} ${JSON.stringify({ ...body, model: api, stream: isStream })}`
  const { whole, events } = ANSWERS[api]
  const text =
    isStream && draw(8) > 0
      ? events.length > 0 && makeEvents(events, draw)
      : JSON.stringify(draw(3) > 0 ? mutateJson(pickOf(whole, draw), draw) : pickOf(whole, draw))
  const parts = makeResponse(Buffer.from(text || ''), isStream, draw)
  if (draw(4) > 0) return { label, parts }
  return { label, parts: [mutate(Buffer.concat(parts), parts, draw)] }
}

function makeEvents(events: readonly Json[], draw: Draw): string {
  const list: unknown[] = events.map((event) => (draw(6) === 0 ? mutateJson(event, draw) : event))
  for (let left = draw(4); left > 0 && list.length > 0; left--) {
    const at = draw(list.length)
    if (draw(3) === 0) list.splice(at, 1)
    else if (draw(2) === 0) list.splice(at, 0, ...Array(1 + draw(30)).fill(list[at]))
    else list.push(...list.splice(at, 1))
  }
  const newline = pickOf(['\n', '\n', '\n', '\r\n', '\r'], draw)
  const lines = list.map((event) => {
    const type = (event as Json | null)?.type
    const name = typeof type === 'string' && draw(10) > 0 ? `event: ${type}${newline}` : ''
    const more =
      draw(15) === 0
        ? pickOf([':', 'id: 1\0', 'retry: 99999999', 'data', 'data:{', 'x'.repeat(9_000)], draw) + newline
        : ''
    return `${more}${name}data:${draw(8) === 0 ? '' : ' '}${JSON.stringify(event)}${newline}${newline}`
  })
  return `${draw(30) === 0 ? '\ufeff' : ''}${lines.join('')}${draw(4) > 0 ? `data: [DONE]${newline}${newline}` : ''}`
}

const STATUSES = [
  '200 OK',
  '200 OK',
  '200 OK',
  '200 OK',
  '201',
  '204 No Content',
  '100 Continue',
  '101 Switching Protocols',
  '301 Moved',
  '304 Not Modified',
  '400 Bad',
  '401 No',
  '404 None',
  '429 Busy',
  '500 Bad',
  '503 Busy',
  '529 Busy',
  '599 X',
  '999 X',
  '000 X',
  '20 X',
]
const HEADERS = [
  'connection: close',
  'connection: upgrade',
  'content-encoding: gzip',
  'set-cookie: a=b',
  'x-a: \x7f\xff',
  'location: //h.invalid',
  'retry-after: 999999999999',
  'content-type: text/html',
  `x-long: ${'a'.repeat(70_000)}`,
  'x-weir-error-code: a',
  'trailer: x-a',
  'content-length: 5',
  'transfer-encoding: gzip, chunked',
  'x-request-id: b',
  ' folded: a',
  'x a: b',
  ':a',
]

/** Head and body with a framing that mostly fits; the body in chunks of any size. */
function makeResponse(body: Buffer, isStream: boolean, draw: Draw): Buffer[] {
  const framing = draw(isStream ? 3 : 5)
  const headers = [`content-type: ${isStream && draw(15) > 0 ? 'text/event-stream' : 'application/json'}`]
  if (framing < 2) headers.push('transfer-encoding: chunked')
  else if (framing > 2)
    headers.push(`content-length: ${draw(15) === 0 ? body.length + draw(3) - 1 : body.length}`)
  for (let left = draw(5) === 0 ? 1 + draw(3) : 0; left > 0; left--) headers.push(pickOf(HEADERS, draw))
  const status = draw(4) > 0 ? STATUSES[0] : pickOf(STATUSES, draw)
  const parts: Buffer[] = [Buffer.from(`HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n`, 'latin1')]
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + 1 + draw(draw(3) === 0 ? 8 : 1_024))
    at += piece.length
    const end = Buffer.from('\r\n')
    parts.push(
      framing < 2 ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, end]) : piece,
    )
  }
  if (framing < 2 && draw(15) > 0)
    parts.push(Buffer.from(draw(10) === 0 ? '0\r\nx-a: b\r\n\r\n' : '0\r\n\r\n'))
  return parts
}
