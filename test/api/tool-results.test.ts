/** Results of tool servers over every client and worker format: what is text reaches the model as text, images as images. */
import { expect, onTestFinished, test } from 'vitest'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import { NATIVE, nativeAnswer } from '../support/responses-script.ts'
import { jsonAnswer, type Script } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'
import { MESSAGES } from './messages-fleet.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const PICTURE = base64('picture of the page')
const EMBEDDED = base64('embedded picture')
const SOUND = base64('sound of the page')

const CONTENT = [
  { type: 'text', text: 'plain words' },
  {
    type: 'resource',
    resource: { uri: 'file:///a.csv', mimeType: 'text/csv; charset=utf-8', blob: base64('heron,1') },
  },
  { type: 'resource', resource: { uri: 'file:///b.md', mimeType: 'text/markdown', text: '# Egret "2"' } },
  { type: 'resource_link', uri: 'file:///c.log', name: 'c.log', mimeType: 'text/plain', size: 7 },
  { type: 'image', mimeType: 'image/png', data: PICTURE },
  { type: 'resource', resource: { uri: 'ui://shot', mimeType: 'image/jpeg', blob: EMBEDDED } },
  { type: 'audio', mimeType: 'audio/wav', data: SOUND },
]
const TEXT = [
  'plain words',
  '[resource file:///a.csv]\nheron,1',
  '[resource file:///b.md]\n# Egret "2"',
  '[link to resource file:///c.log, c.log, text/plain, 7 bytes]',
  '[image: image/png, 19 bytes]',
  '[resource ui://shot: image/jpeg, 16 bytes]',
  '[audio: audio/wav, 17 bytes]',
].join('\n')

const SERVICE = { runtime_type: 'external', api_key: 'k' }
const message = (content: readonly object[], stop_reason: string) =>
  jsonAnswer({ id: 'm', type: 'message', role: 'assistant', model: 'm', content, stop_reason, usage: {} })

interface WorkerFormat {
  readonly route: string
  readonly spec: object
  readonly scripts: readonly [Script, Script]
}

const WORKERS: Readonly<Record<string, WorkerFormat>> = {
  chat: {
    route: CHAT,
    spec: { ...SERVICE, provider: 'openai', apis: ['chat'] },
    scripts: [chatAnswer({ tool_calls: [{ id: 'c1', name: 'look', arguments: '{}' }] }), chatAnswer('done')],
  },
  Responses: {
    route: NATIVE,
    spec: { ...SERVICE, provider: 'openai', apis: ['responses'] },
    scripts: [
      nativeAnswer({
        output: [
          {
            id: 'fc',
            type: 'function_call',
            status: 'completed',
            call_id: 'c1',
            name: 'look',
            arguments: '{}',
          },
        ],
      }),
      nativeAnswer('done'),
    ],
  },
  Messages: {
    route: MESSAGES,
    spec: { ...SERVICE, provider: 'anthropic' },
    scripts: [
      message([{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }], 'tool_use'),
      message([{ type: 'text', text: 'done' }], 'end_turn'),
    ],
  },
}

interface Output {
  readonly type: string
  readonly output?: string
  readonly content?: readonly { readonly text: string }[]
}

const CLIENTS = {
  '/v1/responses': {
    body: (url: string) => ({
      input: 'look',
      store: false,
      tools: [{ type: 'mcp', server_label: 's', server_url: url, require_approval: 'never' }],
    }),
    resultOf: ({ output }: { readonly output: readonly Output[] }) =>
      output.find(({ type }) => type === 'mcp_call')?.output,
  },
  '/v1/messages': {
    body: (url: string) => ({
      max_tokens: 64,
      messages: [{ role: 'user', content: 'look' }],
      mcp_servers: [{ type: 'url', name: 's', url }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 's' }],
    }),
    resultOf: ({ content }: { readonly content: readonly Output[] }) =>
      content.find(({ type }) => type === 'mcp_tool_result')?.content?.[0]?.text,
  },
}

const paths = Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]
const cases = paths.flatMap((path) => Object.keys(WORKERS).map((format) => [path, format] as const))

async function turn(path: keyof typeof CLIENTS, format: string, result: object, spec = {}) {
  const server = await startToolServer({ look: () => result })
  onTestFinished(() => server.close())
  const { route, spec: usual, scripts } = WORKERS[format]
  const { workers, post } = await openFleet({
    workers: [{ spec: { ...usual, ...spec } }],
    plugins: {
      messages: {},
      responses: {},
      mcp: { clientServers: { allowsPrivate: true }, limits: { maxOutputBytes: 2_000 } },
    },
  })
  for (const script of scripts) workers[0].once(route, script)
  const { body, resultOf } = CLIENTS[path]
  const reply = await post(path, { model: 'test-model', ...body(server.url) }, { 'x-weir-mcp': 'enabled' })
  const said = await reply.text()
  expect(reply.status, said).toBe(200)
  const sent = workers[0].requestsTo(route)
  expect(sent).toHaveLength(2)
  return { result: resultOf(JSON.parse(said)), sent: sent[1].body.toString() }
}

test.each(cases)(
  '%s over a %s worker: texts as text, images as images, audio as a note',
  async (path, format) => {
    const { result, sent } = await turn(path, format, { content: CONTENT })
    expect(result).toBe(TEXT)
    expect(sent).toContain(JSON.stringify(TEXT))
    expect(sent.split(PICTURE)).toHaveLength(2)
    expect(sent.split(EMBEDDED)).toHaveLength(2)
    expect(sent).not.toContain(SOUND)
  },
)

test.each(paths)(
  '%s: the image of a failed call is shown, and the text says that it failed',
  async (path) => {
    const content = [
      { type: 'text', text: 'button not found' },
      { type: 'image', mimeType: 'image/png', data: PICTURE },
    ]
    const { sent } = await turn(path, 'chat', { content, isError: true })
    expect(sent).toContain('button not found\\n[image: image/png, 19 bytes]')
    expect(sent).toContain(PICTURE)
  },
)

test('a model without vision gets notes, and no base64', async () => {
  const blind = { runtime_type: 'sglang', provider: undefined, api_key: undefined, apis: undefined }
  const { sent } = await turn('/v1/responses', 'chat', { content: CONTENT }, blind)
  expect(sent).toContain(JSON.stringify(TEXT))
  for (const data of [PICTURE, EMBEDDED, SOUND]) expect(sent).not.toContain(data)
})

test('images beyond the limit of the output are notes, others are shown', async () => {
  const image = (letter: string, length: number) => ({
    type: 'image',
    mimeType: 'image/png',
    data: letter.repeat(length),
  })
  const content = [image('A', 1_200), image('B', 1_200), image('C', 800)]
  const { result, sent } = await turn('/v1/responses', 'chat', { content })
  expect(result).toBe(
    '[image: image/png, 900 bytes]\n[image: image/png, 900 bytes] [too large to show]\n[image: image/png, 600 bytes]',
  )
  expect([/A{1200}/.test(sent), /B{1200}/.test(sent), /C{800}/.test(sent)]).toEqual([true, false, true])
})
