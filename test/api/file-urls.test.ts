/** Files that clients name by URL, over workers of every format: passed on, loaded where the operator allows it, or rejected. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import {
  type Answer,
  jsonAnswer,
  rawAnswer,
  type ScriptedWorker,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { type Fleet, openFleet } from './fleet.ts'
import { openGrpcMessages } from './messages-grpc-fleet.ts'
import { newDirectory } from './responses/responses-fleet.ts'

const PDF = Buffer.from('%PDF-1.7 a document')
const PDF_URL = `data:application/pdf;base64,${PDF.toString('base64')}`
const PNG = Buffer.from('an image')

/** Serves files; `base` begins their URLs. */
let server: ScriptedWorker
let base: string
beforeAll(async () => {
  server = await startScriptedWorker()
  base = server.url
  const file = (path: string, type: string, body: string | Buffer) =>
    server.script(`GET ${path}`, rawAnswer(body, { headers: { 'content-type': type } }))
  file('/a.txt', 'text/plain; charset=utf-8', 'one é')
  file('/latin.txt', 'text/plain; charset=ISO-8859-1', Buffer.from('one é', 'latin1'))
  file('/wrong.txt', 'text/plain', Buffer.from('one é', 'latin1'))
  file('/a.json', 'application/json', '{"a":1}')
  file('/a.pdf', 'application/pdf', PDF)
  file('/a.png', 'image/png', PNG)
  file('/a.zip', 'application/zip', 'PK')
  file('/none', '', 'what')
  file('/odd', 'text/plain,evil;base64', 'what')
  const redirect = (path: string, location: string) =>
    server.script(`GET ${path}`, rawAnswer('', { status: 302, headers: { location } }))
  redirect('/to-text', '/a.txt')
  redirect('/to-loop', '/to-loop')
  redirect('/to-metadata', 'http://169.254.169.254/latest/meta-data')
  redirect('/to-name', 'http://metadata.google.internal/')
  redirect('/to-scheme', 'file:///etc/passwd')
  redirect('/to-denied', `http://localhost:${server.port}/a.txt`)
  server.script('GET /gone', rawAnswer('no', { status: 404 }))
  server.script(
    'GET /zipped',
    rawAnswer('x', { headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' } }),
  )
  server.script(
    'GET /large',
    rawAnswer(Buffer.alloc(2_000, 97), { headers: { 'content-type': 'text/plain' } }),
  )
  server.script('GET /endless', streamAnswer(endless(), { headers: { 'content-type': 'text/plain' } }))
  server.script('GET /slow', { kind: 'hang' })
  server.script(
    'GET /cut',
    streamAnswer(['abc', { drop: 'reset' }], { headers: { 'content-type': 'text/plain' } }),
  )
})
afterAll(() => server.close())

function* endless() {
  for (;;) yield 'x'.repeat(1_000)
}

const ALLOWED = { isAllowed: true, allowsPrivate: true, deniedHosts: ['localhost'], maxBytes: 1_500 }
const MESSAGE = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'seen' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
}
const RESPONSE = { id: 'r', object: 'response', model: 'm', status: 'completed', output: [] }
const WORKERS = {
  chat: [CHAT, chatAnswer('seen')],
  messages: ['POST /v1/messages', jsonAnswer(MESSAGE)],
  responses: ['POST /v1/responses', jsonAnswer(RESPONSE)],
} as const
type Format = keyof typeof WORKERS

async function open(formats: readonly Format[], fileUrls: object, more: object = {}): Promise<Fleet> {
  const fleet = await openFleet({
    workers: formats.map((api) => ({ spec: { apis: [api] } })),
    plugins: { messages: { pdf: 'file' }, responses: {}, generations: { fileUrls }, ...more },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1 } },
  })
  for (const [index, api] of formats.entries())
    fleet.workers[index].script(...(WORKERS[api] as [string, Answer]))
  return fleet
}

const fileItem = (url: string, filename?: string) => [
  {
    role: 'user',
    content: [
      { type: 'input_text', text: 'read' },
      { type: 'input_file', file_url: url, ...(filename !== undefined && { filename }) },
    ],
  },
]
const askResponses = (fleet: Pick<Fleet, 'post'>, url: string, filename?: string) =>
  fleet.post('/v1/responses', { model: 'test-model', store: false, input: fileItem(url, filename) })
const askMessages = (fleet: Pick<Fleet, 'post'>, url: string) =>
  fleet.post('/v1/messages', {
    model: 'test-model',
    max_tokens: 9,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'read' },
          { type: 'document', source: { type: 'url', url }, title: 'T' },
        ],
      },
    ],
  })

async function errorOf(reply: Response) {
  const { error } = (await reply.json()) as { error: { message: string; param?: string } }
  return { status: reply.status, ...error }
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of three formats
const sent = ({ workers }: Fleet, api: Format, index = 0): any[] =>
  workers[index].requestsTo(WORKERS[api][0]).map((request) => request.json())

describe('where the operator does not allow it', () => {
  test('chat workers: 400 that names part, URL and key', async () => {
    const fleet = await open(['chat'], {})
    const error = await errorOf(await askResponses(fleet, `${base}/a.txt?signature=secret`))
    expect(error).toMatchObject({
      status: 400,
      param: 'input[0].content[1].file_url',
      code: 'file_not_loaded',
    })
    expect(error.message).toContain(`${base}/a.txt of 'input[0].content[1].file_url' cannot be loaded`)
    expect(error.message).toContain('plugins.generations.fileUrls.isAllowed')
    expect(error.message).not.toContain('secret')
    const other = await errorOf(await askMessages(fleet, `${base}/a.pdf`))
    expect(other.status).toBe(400)
    expect(other.message).toContain('messages[0].content[1].source.url')
    expect(server.requestsTo('GET /a.txt?signature=secret')).toEqual([])
    expect(sent(fleet, 'chat')).toEqual([])
  })

  test('workers of the other format that loads files get the URL', async () => {
    const messages = await open(['messages'], {})
    expect((await askResponses(messages, `${base}/a.pdf`, 'a.pdf')).status).toBe(200)
    expect(sent(messages, 'messages')[0].messages[0].content[1]).toEqual({
      type: 'document',
      source: { type: 'url', url: `${base}/a.pdf` },
      title: 'a.pdf',
    })
    const responses = await open(['responses'], {})
    expect((await askMessages(responses, `${base}/a.pdf`)).status).toBe(200)
    expect(sent(responses, 'responses')[0].input[0].content[1]).toEqual({
      type: 'input_file',
      file_url: `${base}/a.pdf`,
      filename: 'T',
    })
  })

  test('of several workers, one that loads files gets the request', async () => {
    const fleet = await open(['chat', 'responses'], {})
    for (let count = 0; count < 4; count++)
      expect((await askResponses(fleet, `${base}/a.pdf`)).status).toBe(200)
    expect(sent(fleet, 'responses', 1)).toHaveLength(4)
  })

  test('a tenant that is not listed', async () => {
    const fleet = await open(['chat'], { ...ALLOWED, tenants: ['auth:other'] })
    expect((await errorOf(await askResponses(fleet, `${base}/a.txt`))).status).toBe(400)
  })
})

describe('where the operator allows it', () => {
  test.each([
    ['/a.txt', undefined, { type: 'text', text: 'read\na.txt:\none é' }],
    ['/latin.txt', undefined, { type: 'text', text: 'read\nlatin.txt:\none é' }],
    ['/to-text', 'named.txt', { type: 'text', text: 'read\nnamed.txt:\none é' }],
    ['/a.json', undefined, { type: 'text', text: 'read\na.json:\n{"a":1}' }],
    ['/a.pdf', undefined, { type: 'file', file: { file_data: PDF_URL, filename: 'a.pdf' } }],
    [
      '/a.png',
      undefined,
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } },
    ],
  ])('%s becomes a part of chat workers', async (path, filename, part) => {
    const fleet = await open(['chat'], ALLOWED)
    const reply = await askResponses(fleet, base + path, filename)
    expect(reply.status, await reply.text()).toBe(200)
    const { content } = sent(fleet, 'chat')[0].messages[0]
    expect(part.type === 'text' ? content : content[1]).toEqual('text' in part ? part.text : part)
  })

  test('documents of Messages clients over chat workers, and files of results of tools', async () => {
    const fleet = await open(['chat'], ALLOWED)
    expect((await askMessages(fleet, `${base}/a.pdf`)).status).toBe(200)
    expect(sent(fleet, 'chat')[0].messages[0].content[1]).toEqual({
      type: 'file',
      file: { file_data: PDF_URL, filename: 'T' },
    })
    const reply = await fleet.post('/v1/responses', {
      model: 'test-model',
      store: false,
      input: [
        { role: 'user', content: 'go' },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        {
          type: 'function_call_output',
          call_id: 'c',
          output: [{ type: 'input_file', file_url: `${base}/a.txt` }],
        },
      ],
    })
    expect(reply.status, await reply.text()).toBe(200)
    expect(JSON.stringify(sent(fleet, 'chat')[1].messages)).toContain('one é')
  })

  test('Messages workers get the content, Responses workers the URL', async () => {
    const messages = await open(['messages'], ALLOWED)
    expect((await askResponses(messages, `${base}/a.txt`)).status).toBe(200)
    expect(JSON.stringify(sent(messages, 'messages')[0].messages)).toContain('one é')
    server.requests.length = 0
    const responses = await open(['responses'], ALLOWED)
    expect((await askResponses(responses, `${base}/a.txt`)).status).toBe(200)
    expect(sent(responses, 'responses')[0].input[0].content[1]).toMatchObject({ file_url: `${base}/a.txt` })
    expect(server.requests).toEqual([])
  })

  test('gRPC workers get text; a document is named', async () => {
    const plugins = { responses: {}, generations: { fileUrls: ALLOWED } }
    const { post, engineAnswers, asked } = await openGrpcMessages({ plugins })
    await engineAnswers('ok')
    const reply = await askResponses({ post }, `${base}/a.txt`)
    expect(reply.status, await reply.text()).toBe(200)
    expect(asked()[0].tokenized.originalText).toContain('one é')
    expect((await errorOf(await askResponses({ post }, `${base}/a.pdf`))).status).toBe(400)
  })

  test.each([
    ['/a.zip', "(got 'application/zip')"],
    ['/wrong.txt', "not valid in the charset 'utf-8'"],
    ['/none', '(got none)'],
    ['/odd', 'content type must be'],
    ['/gone', 'status 404'],
    ['/zipped', 'compresses'],
    ['/large', 'plugins.generations.fileUrls.maxBytes'],
    ['/endless', 'plugins.generations.fileUrls.maxBytes'],
    ['/cut', 'broke the connection'],
    ['/to-loop', 'redirects more than 3 times'],
    ['/to-metadata', 'cloud metadata service (plugins.generations.fileUrls)'],
    ['/to-name', 'cloud metadata service (plugins.generations.fileUrls)'],
    ['/to-scheme', 'not an http or https URL'],
    ['/to-denied', 'its host is denied (plugins.generations.fileUrls)'],
  ])('%s: 400 that says why', async (path, reason) => {
    const fleet = await open(['chat'], ALLOWED)
    const error = await errorOf(await askResponses(fleet, base + path))
    expect(error).toMatchObject({
      status: 400,
      code: 'file_not_loaded',
      param: 'input[0].content[1].file_url',
    })
    expect(error.message).toContain(reason)
    expect(sent(fleet, 'chat')).toEqual([])
  })

  test.each([
    ['http://127.0.0.1:9/a', 'private'],
    ['http://[::1]:9/a', 'private'],
    ['http://localhost:9/a', 'private'],
    ['http://169.254.169.254/a', 'metadata'],
    ['http://user:secret@example.com/a', 'user name'],
    ['data:text/plain,hello', 'not an http or https URL'],
    ['nothing', 'not an http or https URL'],
  ])('%s is outside the default rules', async (url, reason) => {
    const fleet = await open(['chat'], { isAllowed: true })
    const error = await errorOf(await askResponses(fleet, url))
    expect(error.status).toBe(400)
    expect(error.message).toContain(reason)
  })

  test('a server that is silent for too long', async () => {
    const fleet = await open(['chat'], { ...ALLOWED, timeoutMs: 50 })
    const error = await errorOf(await askResponses(fleet, `${base}/slow`))
    expect(error).toMatchObject({ status: 400 })
    expect(error.message).toContain('plugins.generations.fileUrls.timeoutMs')
  })

  test('a client that disconnects ends the request to the server', async () => {
    const fleet = await open(['chat'], ALLOWED)
    server.requests.length = 0
    const stream = openSse(`${fleet.gateway.url}/v1/responses`, {
      body: { model: 'test-model', stream: true, store: false, input: fileItem(`${base}/slow`) },
    })
    const request = await server.received('GET /slow')
    stream.close()
    await request.closed
    expect(request.isAborted).toBe(true)
    expect(sent(fleet, 'chat')).toEqual([])
  })

  test('a URL is loaded once per request, and a request has so many at most', async () => {
    const fleet = await open(['chat'], { ...ALLOWED, maxPerRequest: 2 })
    const input = (paths: readonly string[]) => paths.flatMap((path) => fileItem(base + path))
    const ask = (paths: readonly string[]) =>
      fleet.post('/v1/responses', { model: 'test-model', store: false, input: input(paths) })
    server.requests.length = 0
    expect((await ask(['/a.txt', '/a.txt', '/a.json', '/a.txt'])).status).toBe(200)
    expect(server.requests.map(({ path }) => path)).toEqual(['/a.txt', '/a.json'])
    const error = await errorOf(await ask(['/a.txt', '/a.json', '/a.pdf']))
    expect(error).toMatchObject({ status: 400, param: 'input[2].content[1].file_url' })
    expect(error.message).toContain('plugins.generations.fileUrls.maxPerRequest')
  })

  test('retries of a failing worker do not load again', async () => {
    const fleet = await open(['chat'], ALLOWED)
    fleet.workers[0].once(CHAT, { kind: 'drop', how: 'reset' })
    server.requests.length = 0
    expect((await askResponses(fleet, `${base}/a.txt`)).status).toBe(200)
    expect(server.requests).toHaveLength(1)
  })

  test('their bytes count with the bodies of the caller until the end of the request', async () => {
    const fleet = await openFleet({
      workers: [{ spec: { apis: ['chat'] } }],
      plugins: { responses: {}, generations: { fileUrls: { ...ALLOWED, maxBytes: 100_000 } } },
      kernel: { http: { maxBodyBytes: 3_500, maxHeldBodyBytes: 3_500, maxHeldBodyBytesPerTenant: 3_500 } },
    })
    const [worker] = fleet.workers
    worker.script(...WORKERS.chat)
    for (let count = 0; count < 3; count++)
      expect((await askResponses(fleet, `${base}/large`)).status).toBe(200)
    worker.once(CHAT, { kind: 'hang' })
    const first = new AbortController()
    const body = JSON.stringify({ model: 'test-model', store: false, input: fileItem(`${base}/large`) })
    const slow = fetch(`${fleet.gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: first.signal,
    }).catch(() => null)
    await expect.poll(() => worker.requestsTo(CHAT).length).toBe(4)
    const error = await errorOf(await askResponses(fleet, `${base}/large`))
    expect(error).toMatchObject({ status: 429, code: 'too_many_body_bytes' })
    expect(error.message).toContain('kernel.http.maxHeldBodyBytesPerTenant')
    first.abort()
    await slow
    await expect.poll(async () => (await askResponses(fleet, `${base}/large`)).status).toBe(200)
  })

  test('a tenant has so many at a time', async () => {
    const fleet = await open(['chat'], { ...ALLOWED, maxConcurrentPerTenant: 1 })
    server.requests.length = 0
    const first = new AbortController()
    onTestFinished(() => first.abort())
    const slow = fetch(`${fleet.gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'test-model', store: false, input: fileItem(`${base}/slow`) }),
      signal: first.signal,
    }).catch(() => null)
    const request = await server.received('GET /slow')
    expect((await errorOf(await askResponses(fleet, `${base}/a.txt`))).status).toBe(429)
    first.abort()
    await slow
    await request.closed
    await expect.poll(async () => (await askResponses(fleet, `${base}/a.txt`)).status).toBe(200)
  })
})

test.each([
  ['chat', 'input_file', 400],
  ['messages', 'input_file', 400],
  ['responses', 'input_file', 200],
  ['chat', 'input_image', 400],
  ['responses', 'input_image', 200],
] as const)('%s workers and an %s by id: %s', async (api, type, status) => {
  const fleet = await open([api], ALLOWED)
  const input = [{ role: 'user', content: [{ type, file_id: 'file-1' }] }]
  const reply = await fleet.post('/v1/responses', { model: 'test-model', store: false, input })
  expect(reply.status).toBe(status)
  if (status === 400) expect((await errorOf(reply)).param).toBe('input[0].content[0].file_id')
  else expect(sent(fleet, api)[0].input[0].content[0]).toMatchObject({ type, file_id: 'file-1' })
})

test.each(['chat', 'messages'] as const)(
  '%s workers: a file in a turn of the model is named',
  async (api) => {
    const fleet = await open([api], ALLOWED)
    const content = [{ type: 'input_file', file_data: PDF_URL }]
    const input = [{ role: 'assistant', content }]
    const reply = await fleet.post('/v1/responses', { model: 'test-model', store: false, input })
    expect(await errorOf(reply)).toMatchObject({ status: 400, param: 'input[0].content[0].type' })
  },
)

test('Messages workers: an image in a system message is named', async () => {
  const fleet = await open(['messages'], ALLOWED)
  const content = [{ type: 'input_image', image_url: `${base}/a.png` }]
  const input = [{ role: 'system', content }, ...fileItem(`${base}/a.txt`)]
  const reply = await fleet.post('/v1/responses', { model: 'test-model', store: false, input })
  expect(await errorOf(reply)).toMatchObject({ status: 400, param: 'input' })
  expect(sent(fleet, 'messages')).toEqual([])
})

test('what another format lacks of earlier turns is named', async () => {
  const fleet = await openFleet({
    workers: [
      { models: ['native-model'], spec: { apis: ['responses'] } },
      { models: ['chat-model'], spec: { apis: ['chat'] } },
    ],
    plugins: { responses: {}, history: {}, storage: { dir: newDirectory() } },
  })
  const [native, chat] = fleet.workers
  native.script(...WORKERS.responses)
  chat.script(...WORKERS.chat)
  const content = [
    { type: 'input_text', text: 'read' },
    { type: 'input_file', file_id: 'file-1' },
    { type: 'input_new', value: 1 },
  ]
  const input = [{ role: 'user', content }, { type: 'new_item' }]
  const first = await fleet.post('/v1/responses', { model: 'native-model', input })
  expect(first.status).toBe(200)
  const { id } = (await first.json()) as { id: string }
  const second = await fleet.post('/v1/responses', {
    model: 'chat-model',
    previous_response_id: id,
    input: 'go on',
  })
  expect(second.status, await second.text()).toBe(200)
  expect(second.headers.get('x-weir-warning')).toBe(
    'members_ignored; count=3; names="input.content.file_id input.content.input_new input.new_item"',
  )
})
