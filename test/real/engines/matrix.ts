/** The requests that are sent to real engines directly and through the gateway, and what is compared of the responses. */

export interface MatrixRequest {
  readonly name: string
  readonly path: string
  readonly body: object
  /** The client disconnects after the first bytes. */
  readonly leaves?: boolean
}

const CHAT = '/v1/chat/completions'
const COMPLETIONS = '/v1/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'

const user = (content: unknown) => ({ role: 'user', content })
const hello = [user('Say hello.')]
const tool = {
  name: 'get_weather',
  description: 'Weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const schema = { type: 'object', properties: { name: { type: 'string', maxLength: 5 } }, required: ['name'] }
const IMAGE =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=='
const short = { max_tokens: 6, temperature: 0 }
const usage = { stream: true, stream_options: { include_usage: true } }
const long = 'word '.repeat(3_000)

const chat = (name: string, more: object, leaves?: boolean): MatrixRequest => ({
  name: `chat: ${name}`,
  path: CHAT,
  body: { messages: hello, ...short, ...more },
  leaves,
})
const completion = (name: string, more: object): MatrixRequest => ({
  name: `completions: ${name}`,
  path: COMPLETIONS,
  body: { prompt: 'One, two,', ...short, ...more },
})
const message = (name: string, more: object, path = MESSAGES): MatrixRequest => ({
  name: `messages: ${name}`,
  path,
  body: { messages: hello, ...short, ...more },
})
const response = (name: string, more: object): MatrixRequest => ({
  name: `responses: ${name}`,
  path: RESPONSES,
  body: { input: 'Say hello.', temperature: 0, max_output_tokens: 6, store: false, ...more },
})

export const MATRIX: readonly MatrixRequest[] = [
  chat('whole', {}),
  chat('stream', { stream: true }),
  chat('stream with usage', usage),
  chat('n', { n: 2 }),
  chat('n, stream', { n: 2, ...usage }),
  chat('stop', { max_tokens: 24, stop: ['!'] }),
  chat('stop, stream', { max_tokens: 24, stop: ['!'], stream: true }),
  chat('logprobs', { logprobs: true, top_logprobs: 2 }),
  chat('logprobs, stream', { logprobs: true, top_logprobs: 2, stream: true }),
  chat('tools', { tools: [{ type: 'function', function: tool }] }),
  chat('tools, required', { tools: [{ type: 'function', function: tool }], tool_choice: 'required' }),
  chat('JSON schema', {
    max_tokens: 24,
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
  }),
  chat('JSON object', { max_tokens: 24, response_format: { type: 'json_object' } }),
  chat('image', { messages: [user([{ type: 'image_url', image_url: { url: IMAGE } }])] }),
  chat('overflow', { messages: [user(long)] }),
  chat('overflow, stream', { messages: [user(long)], stream: true }),
  chat('max_tokens 0', { max_tokens: 0 }),
  chat('max_tokens 1', { max_tokens: 1 }),
  chat('seed', { seed: 7, temperature: 1 }),
  chat('assistant last', { messages: [...hello, { role: 'assistant', content: 'Hello' }] }),
  chat('assistant last, stream', {
    stream: true,
    messages: [...hello, { role: 'assistant', content: 'Hello' }],
  }),
  chat('system last', { messages: [...hello, { role: 'system', content: 'Be brief.' }] }),
  chat('empty messages', { messages: [] }),
  chat('unknown member', { surprise: true }),
  chat('disconnect, stream', { max_tokens: 400, stream: true }, true),
  completion('whole', {}),
  completion('stream', usage),
  completion('list of prompts', { prompt: ['One,', 'Two,'] }),
  completion('token ids', { prompt: [504, 28, 216, 34] }),
  completion('echo', { echo: true }),
  completion('stop', { max_tokens: 24, stop: [','] }),
  { name: 'embeddings', path: '/v1/embeddings', body: { input: 'hi' } },
  message('whole', {}),
  message('stream', { stream: true }),
  message('stop sequence', { max_tokens: 24, stop_sequences: ['!'] }),
  message('prefill', { messages: [...hello, { role: 'assistant', content: 'Hello' }] }),
  message('count', { max_tokens: undefined, temperature: undefined }, `${MESSAGES}/count_tokens`),
  response('whole', {}),
  response('stream', { stream: true }),
  response('instructions', { instructions: 'Be brief.' }),
]

/** What a client sees of a response, without what differs each time. */
export async function factsOf(url: string, model: string, request: MatrixRequest): Promise<string> {
  const client = new AbortController()
  const response = await fetch(url + request.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model, ...request.body }),
    signal: client.signal,
  })
  if (request.leaves === true) {
    await response.body?.getReader().read()
    client.abort()
    return `${response.status}, left`
  }
  const text = await response.text()
  if (response.headers.get('content-type')?.includes('event-stream') !== true)
    return `${response.status} ${factsOfJson(parsed(text))}`
  const events = text.split(/\r?\n\r?\n/).flatMap((event) => /^data: ?(.*)$/m.exec(event)?.[1] ?? [])
  return `${response.status} ${factsOfStream(events)}`
}

type Json = Record<string, unknown>

function parsed(text: string): Json {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return { unreadable: text.slice(0, 100) }
  }
}

function factsOfJson(body: Json): string {
  const {
    error,
    choices,
    usage: used,
    content,
    output,
    status,
    stop_reason,
    input_tokens,
    data,
    detail,
  } = body
  if (error != null || detail !== undefined) return `error ${JSON.stringify(messageOf(error ?? detail))}`
  const texts = list(choices).map(({ message: one, text, finish_reason, logprobs }) =>
    [textOf(one) ?? text, finish_reason, logprobs == null ? null : 'logprobs'].filter(
      (fact) => fact !== null,
    ),
  )
  const parts = [...list(content), ...list(output)].map((part) => textOf(part))
  return JSON.stringify({
    texts,
    parts,
    status,
    stop_reason,
    usage: countsOf(used),
    input_tokens,
    data: list(data).length,
  })
}

function factsOfStream(events: readonly string[]): string {
  const chunks = events.filter((event) => event.startsWith('{')).map(parsed)
  const texts: Record<string, string> = {}
  const ends: unknown[] = []
  let used: unknown
  for (const chunk of chunks) {
    const { choices, delta, type, usage: counts, response: one, error } = chunk
    if (error != null) ends.push(`error ${JSON.stringify(messageOf(error))}`)
    for (const { index, delta: piece, text, finish_reason } of list(choices)) {
      texts[String(index)] = (texts[String(index)] ?? '') + (textOf(piece) ?? text ?? '')
      if (finish_reason != null) ends.push(finish_reason)
    }
    if (String(type).endsWith('delta')) texts[''] = (texts[''] ?? '') + (textOf(delta) ?? '')
    if ((delta as Json | null)?.stop_reason != null) ends.push((delta as Json).stop_reason)
    if (/^response\.(completed|incomplete|failed)$/.test(String(type))) ends.push((one as Json).status)
    used = countsOf(counts) ?? countsOf((one as Json | undefined)?.usage) ?? used
  }
  return JSON.stringify({ texts, ends: ends.sort(), usage: used, done: events.includes('[DONE]') })
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? value : [])

function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return null
  const { text, content, tool_calls } = value as Json
  if (tool_calls !== undefined) return 'tool calls'
  return typeof text === 'string'
    ? text
    : Array.isArray(content)
      ? content.map(textOf).join('')
      : textOf(content)
}

function messageOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null ? (error as Json).message : error
}

function countsOf(used: unknown): unknown {
  if (typeof used !== 'object' || used === null) return undefined
  const { prompt_tokens, completion_tokens, output_tokens } = used as Json
  return [prompt_tokens, completion_tokens ?? output_tokens].filter((count) => count !== undefined)
}
