/** Workers of each kind that say the same texts, cut into pieces as a test wants: chat, native generation, vendors, gRPC. */
import { byteEncoder } from './agent-lanes.ts'
import { chunk } from './chat-script.ts'
import { startScriptedEngine } from './scripted-engine.ts'
import {
  type Answer,
  jsonAnswer,
  type RecordedRequest,
  sseAnswer,
  startScriptedWorker,
  streamAnswer,
} from './scripted-worker.ts'

/** Pieces of each text. */
export interface Said {
  readonly reasoning: readonly string[]
  readonly text: readonly string[]
  /** Arguments of a call of `look`; empty for no call. */
  readonly arguments: readonly string[]
}

export const WORKER_KINDS = ['relayed', 'generate', 'messages', 'responses', 'grpc'] as const
export type WorkerKind = (typeof WORKER_KINDS)[number]

type Json = Record<string, unknown>
const TOOL = 'look'
const whole = (pieces: readonly string[]) => pieces.join('')
const isStream = (request: RecordedRequest) => (request.json() as { stream?: boolean }).stream === true

export class TextWorkers {
  said: Said = { reasoning: [], text: [], arguments: [] }
  /** Bodies that the workers received, as text. */
  readonly received: string[] = []
  readonly specs: Json[] = []
  readonly #closers: (() => Promise<void>)[] = []

  static async start(): Promise<TextWorkers> {
    const workers = new TextWorkers()
    await workers.#http(
      'relayed',
      {},
      {
        'POST /v1/chat/completions': chat,
        'POST /v1/completions': completion,
        'POST /generate': generated,
        'POST /v1/embeddings': () => jsonAnswer({ object: 'list', model: 'm', data: [] }),
        'POST /v1/classify': () => jsonAnswer({ object: 'list', model: 'm', data: [] }),
        'POST /v1/rerank': () => jsonAnswer({ results: [{ index: 0, relevance_score: 1 }] }),
      },
    )
    await workers.#http('generate', { apis: ['generate'] }, { 'POST /generate': generated })
    const vendor = { runtime_type: 'external', api_key: 'k' }
    await workers.#http(
      'messages',
      { ...vendor, apis: ['messages'], provider: 'anthropic' },
      {
        'POST /v1/messages': message,
        'POST /v1/messages/count_tokens': () => jsonAnswer({ input_tokens: 1 }),
      },
    )
    await workers.#http('responses', { ...vendor, apis: ['responses'] }, { 'POST /v1/responses': response })
    await workers.#grpc()
    return workers
  }

  async close(): Promise<void> {
    for (const close of this.#closers) await close()
  }

  async #http(
    kind: WorkerKind,
    spec: Json,
    scripts: Record<string, (said: Said, isStreamed: boolean) => Answer>,
  ) {
    const worker = await startScriptedWorker({ models: [kind] })
    for (const [route, script] of Object.entries(scripts))
      worker.script(route, (request) => {
        this.received.push(String(request.body))
        return script(this.said, isStream(request))
      })
    this.specs.push({ url: worker.url, runtime_type: 'sglang', models: [{ id: kind }], ...spec })
    this.#closers.push(() => worker.close())
  }

  async #grpc() {
    const engine = await startScriptedEngine({ model: 'grpc' })
    const encode = byteEncoder()
    engine.script = ({ request }) => {
      this.received.push(JSON.stringify(request))
      const { text, arguments: parts } = this.said
      const prompt = (request as { tokenized?: { originalText: string } }).tokenized?.originalText ?? ''
      // A call is written in the format of the sample template.
      const call =
        !prompt.includes('<tools>') || parts.length === 0
          ? []
          : ['<tool_call>', `\n{"name":"${TOOL}","arguments":`, ...parts, '}\n', '</tool_call>']
      return engine.steps(inPieces(encode(whole([...text, ...call])), text), {}, request)
    }
    this.specs.push({ url: engine.url, models: [{ id: 'grpc' }] })
    this.#closers.push(() => engine.close())
  }
}

/** The ids in lists of as many as the pieces have letters, which also cuts characters. */
function inPieces(ids: readonly number[], pieces: readonly string[]): (readonly number[])[] {
  const lists: (readonly number[])[] = []
  let at = 0
  for (const { length } of pieces) {
    lists.push(ids.slice(at, at + length))
    at += length
  }
  return [...lists, ids.slice(at)].filter((list) => list.length > 0)
}

/** A source of the text, in the form of chat completions and of Responses. */
const source = (text: readonly string[]) => ({
  url: `https://example.com/?q=${whole(text)}`,
  title: whole(text),
  start_index: 0,
  end_index: 1,
})

function chat({ reasoning, text, arguments: parts }: Said, isStreamed: boolean): Answer {
  const finish = parts.length === 0 ? 'stop' : 'tool_calls'
  const annotations = [{ type: 'url_citation', url_citation: source(text) }]
  const call = (piece: string) => ({
    index: 0,
    id: 'call_1',
    type: 'function',
    function: { name: TOOL, arguments: piece },
  })
  if (!isStreamed) {
    const message = {
      role: 'assistant',
      content: whole(text),
      reasoning_content: whole(reasoning),
      annotations,
      ...(parts.length > 0 && { tool_calls: [call(whole(parts))] }),
    }
    const tokens = text.map((token) => ({ token, logprob: -1, bytes: null, top_logprobs: [] }))
    const choice = { index: 0, message, finish_reason: finish, logprobs: { content: tokens } }
    return jsonAnswer({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [choice] })
  }
  const tokens = (token: string) => ({
    logprobs: { content: [{ token, logprob: -1, bytes: null, top_logprobs: [] }] },
  })
  return sseAnswer([
    ...reasoning.map((piece) => chunk({ reasoning_content: piece })),
    ...text.map((piece) => chunk({ content: piece }, null, tokens(piece))),
    chunk({ annotations }),
    ...(parts.length > 0 ? [chunk({ tool_calls: [call('')] })] : []),
    ...parts.map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    chunk({}, finish),
    '[DONE]',
  ])
}

function completion({ text }: Said, isStreamed: boolean): Answer {
  const head = { id: 'c', object: 'text_completion', created: 1, model: 'm' }
  const choice = (piece: string, finish_reason: string | null) => ({
    ...head,
    choices: [{ index: 0, text: piece, finish_reason, logprobs: null }],
  })
  if (!isStreamed) return jsonAnswer(choice(whole(text), 'stop'))
  const chunks = [...text.map((piece) => choice(piece, null)), choice('', 'stop')]
  return sseAnswer([...chunks.map((one) => JSON.stringify(one)), '[DONE]'])
}

/** Each event has the whole text so far. */
function generated({ text }: Said, isStreamed: boolean): Answer {
  const frame = (count: number, finish_reason: object | null) => ({
    text: whole(text.slice(0, count)),
    output_ids: text.slice(0, count).map((_, id) => id),
    meta_info: { id: 'g', finish_reason, prompt_tokens: 1, completion_tokens: count },
  })
  const end = frame(text.length, { type: 'stop', matched: 2 })
  if (!isStreamed) return jsonAnswer(end)
  return sseAnswer(
    [...text.map((_, at) => frame(at + 1, null)), end].map((one) => JSON.stringify(one)).concat('[DONE]'),
  )
}

function message({ reasoning, text, arguments: parts }: Said, isStreamed: boolean): Answer {
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' }
  const usage = { input_tokens: 1, output_tokens: 1 }
  const end = { stop_reason: parts.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null }
  const blocks = [
    { start: { type: 'thinking', thinking: '', signature: '' }, delta: 'thinking', pieces: reasoning },
    { start: { type: 'text', text: '' }, delta: 'text', pieces: text },
    { start: { type: 'tool_use', id: 'toolu_1', name: TOOL, input: {} }, delta: 'input_json', pieces: parts },
  ].filter(({ pieces }) => pieces.length > 0)
  // Of a tool that the vendor ran.
  const result = {
    type: 'mcp_tool_result',
    tool_use_id: 'mcptoolu_1',
    is_error: false,
    content: [{ type: 'text', text: whole(text) }],
  }
  const citation = { type: 'char_location', cited_text: whole(text), document_title: whole(text) }
  if (!isStreamed) {
    const content = blocks.map(({ start, pieces }) =>
      start.type === 'tool_use'
        ? { ...start, input: JSON.parse(whole(pieces)) as Json }
        : { ...start, [start.type]: whole(pieces), ...(start.type === 'thinking' && { signature: 'sig' }) },
    )
    for (const block of content as Json[]) if (block.type === 'text') block.citations = [citation]
    return jsonAnswer({ ...head, content: [result, ...content], ...end, usage })
  }
  const frames: string[] = []
  const event = (type: string, members: Json) =>
    frames.push(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`)
  event('message_start', { message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage } })
  event('content_block_start', { index: blocks.length, content_block: result })
  event('content_block_stop', { index: blocks.length })
  for (const [index, { start, delta: kind, pieces }] of blocks.entries()) {
    event('content_block_start', { index, content_block: start })
    const member = kind === 'input_json' ? 'partial_json' : kind
    for (const piece of pieces)
      event('content_block_delta', { index, delta: { type: `${kind}_delta`, [member]: piece } })
    if (kind === 'thinking')
      event('content_block_delta', { index, delta: { type: 'signature_delta', signature: 'sig' } })
    if (kind === 'text') event('content_block_delta', { index, delta: { type: 'citations_delta', citation } })
    event('content_block_stop', { index })
  }
  event('message_delta', { delta: end, usage })
  event('message_stop', {})
  return streamAnswer(frames, { headers: { 'content-type': 'text/event-stream' } })
}

function response({ reasoning, text, arguments: parts }: Said, isStreamed: boolean): Answer {
  const annotation = { type: 'url_citation', ...source(text) }
  // Of a tool that the vendor ran.
  const ran = {
    id: 'mcp_1',
    type: 'mcp_call',
    status: 'completed',
    server_label: 's',
    name: 'find',
    arguments: JSON.stringify({ text: whole(text) }),
    output: whole(text),
    error: null,
  }
  const items = [
    {
      item: ran,
      delta: 'response.mcp_call_arguments.delta',
      done: { type: 'response.mcp_call.completed' },
      pieces: text,
    },
    {
      item: { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: whole(reasoning) }] },
      delta: 'response.reasoning_summary_text.delta',
      done: { type: 'response.reasoning_summary_text.done', text: whole(reasoning) },
      pieces: reasoning,
    },
    {
      item: {
        id: 'msg_1',
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: whole(text), annotations: [annotation], logprobs: [] }],
      },
      delta: 'response.output_text.delta',
      done: { type: 'response.output_text.done', text: whole(text) },
      pieces: text,
    },
    {
      item: {
        id: 'fc_1',
        type: 'function_call',
        status: 'completed',
        call_id: 'call_1',
        name: TOOL,
        arguments: whole(parts),
      },
      delta: 'response.function_call_arguments.delta',
      done: { type: 'response.function_call_arguments.done', arguments: whole(parts) },
      pieces: parts,
    },
  ].filter(({ pieces }) => pieces.length > 0)
  const reply = (status: string, output: readonly Json[]) => ({
    id: 'resp_up',
    object: 'response',
    created_at: 1,
    model: 'm',
    status,
    output,
    error: null,
    incomplete_details: null,
    usage: null,
  })
  const end = reply(
    'completed',
    items.map(({ item }) => item),
  )
  if (!isStreamed) return jsonAnswer(end)
  const steps: string[] = []
  const event = (type: string, members: Json) =>
    steps.push(JSON.stringify({ type, sequence_number: steps.length, ...members }))
  event('response.created', { response: reply('in_progress', []) })
  for (const [output_index, { item, delta, done, pieces }] of items.entries()) {
    const where = { item_id: item.id, output_index, content_index: 0, summary_index: 0 }
    event('response.output_item.added', {
      output_index,
      item:
        item.type === 'mcp_call'
          ? { ...item, output: null }
          : { ...item, content: [], summary: [], arguments: '' },
    })
    for (const piece of pieces) event(delta, { ...where, delta: piece })
    const { type, ...members } = done
    event(type, { ...where, ...members })
    if (item.type === 'message')
      event('response.output_text.annotation.added', { ...where, annotation_index: 0, annotation })
    if (item.type === 'message')
      event('response.content_part.done', { ...where, part: (item as { content: Json[] }).content[0] })
    event('response.output_item.done', { output_index, item })
  }
  event('response.completed', { response: end })
  return sseAnswer(steps)
}
