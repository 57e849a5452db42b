/** Load client that mixes all kinds of requests: each lane sends one kind after another until the time is over. */
import { parseArgs } from 'node:util'
import { callGateway } from './gateway.ts'
import { announceReady, wait } from './process.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    seconds: { type: 'string', default: '60' },
    lanes: { type: 'string', default: '16' },
  },
})
const port = Number(values.port)
const endsAtMs = performance.now() + Number(values.seconds) * 1_000
const TEXT = 'How are you today? '.repeat(10)
const messages = [{ role: 'user', content: TEXT }]
const TURNS = 8
const counts: Record<string, number> = {}

/** @returns the body */
async function send(kind: string, method: string, path: string, body?: object): Promise<string> {
  const response = await callGateway(port, method, path, body)
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${text}`)
  counts[kind] = (counts[kind] ?? 0) + 1
  return text
}

const respond = async (kind: string, body: object) =>
  JSON.parse(await send(kind, 'POST', '/v1/responses', { model: 'bench', input: TEXT, ...body }))

const KINDS: readonly (() => Promise<void>)[] = [
  async () => {
    for (const stream of [false, true])
      await send('chats', 'POST', '/v1/chat/completions', { model: 'bench', stream, messages })
  },
  async () => {
    let previous_response_id = null
    for (let turn = 0; turn < TURNS; turn++)
      previous_response_id = (await respond('turns of chains', { previous_response_id })).id
  },
  async () => {
    const { id: conversation } = JSON.parse(await send('conversations', 'POST', '/v1/conversations', {}))
    for (let turn = 0; turn < TURNS; turn++) await respond('turns of conversations', { conversation })
  },
  async () => {
    const body = { model: 'bench', stream: true, max_tokens: 64, messages }
    await send('messages', 'POST', '/v1/messages', body)
  },
  async () => {
    const tool = { type: 'mcp', server_label: 'tools', require_approval: 'never' }
    await respond('turns with a tool', { tools: [tool] })
  },
  async () => {
    let { id, status } = await respond('background responses', { background: true })
    while (status === 'queued' || status === 'in_progress') {
      await wait(5)
      const response = await callGateway(port, 'GET', `/v1/responses/${id}`)
      status = ((await response.json()) as { status: string }).status
    }
  },
]

async function lane(first: number): Promise<void> {
  for (let at = first; performance.now() < endsAtMs; at++) await KINDS[at % KINDS.length]()
}

await Promise.all(Array.from({ length: Number(values.lanes) }, (_, index) => lane(index)))
announceReady(counts)
