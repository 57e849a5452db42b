/** Requests with the maximum number of messages and tools are processed in linear time. */
import { expect, test } from 'vitest'
import type { MessagesRequest } from '../wire.ts'
import { checkRequest } from './check-request.ts'
import { toServerTools } from './gateway-tools.ts'
import { toChatMessages } from './to-chat-messages.ts'

const COUNT = 60_000
/** Usually some tens of milliseconds; quadratic work would take half a minute or more. */
const MOST_MS = 10_000

function cpuOf(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const many = <T>(make: (i: number) => T): T[] => Array.from({ length: COUNT }, (_, i) => make(i))
const HELLO = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'a' }] }

test.each([
  ['user', { type: 'image', source: { type: 'url', url: 'http://a' } }],
  ['assistant', { type: 'text', text: 'a' }],
])(
  'many adjacent turns of the %s are merged into one',
  (role, block) => {
    const messages = many(() => ({ role, content: [block] }))
    const request = { ...HELLO, messages } as unknown as MessagesRequest
    let chat: readonly object[] = []
    expect(cpuOf(() => (chat = toChatMessages(request, { pdf: 'file' })))).toBeLessThan(MOST_MS)
    expect(chat).toHaveLength(1)
    expect((chat[0] as { content: unknown[] }).content.length).toBeGreaterThanOrEqual(COUNT)
  },
  300_000,
)

test('many toolsets find their servers', () => {
  const body = {
    ...HELLO,
    mcp_servers: many((i) => ({ type: 'url', name: `s${i}`, url: 'http://a' })),
    tools: many((i) => ({ type: 'mcp_toolset', mcp_server_name: `s${COUNT - 1 - i}` })),
  }
  let labels: readonly string[] = []
  const run = () => {
    labels = toServerTools(checkRequest(body, true)).map(({ label }) => label)
  }
  expect(cpuOf(run)).toBeLessThan(MOST_MS)
  expect([labels.length, labels[0]]).toEqual([COUNT, `s${COUNT - 1}`])
}, 300_000)
