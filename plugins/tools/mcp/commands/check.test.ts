/** Output of `weir mcp check` for servers that work and servers that do not. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startStatelessServer } from '../../../../test/support/mcp/stateless-server.ts'
import { startToolServer } from '../../../../test/support/mcp/tool-server.ts'
import { checkServer } from './check.ts'

const ends: (() => void | Promise<void>)[] = []
let said = ''

beforeEach(() => {
  said = ''
  vi.spyOn(console, 'log').mockImplementation((text: string) => {
    said += text
  })
})

afterEach(async () => {
  vi.restoreAllMocks()
  process.exitCode = undefined
  for (const end of ends.splice(0)) await end()
})

async function serve(...args: Parameters<typeof startToolServer>) {
  const server = await startToolServer(...args)
  ends.push(() => server.close())
  return server
}

const check = (place: string, options: object = {}) => checkServer(place, { arguments: '{}', ...options })

test('a working server: its tools, and the call of a read-only one', async () => {
  const server = await serve({
    write: { description: 'Writes.', run: () => 'no' },
    now: { description: 'Tells\u001b[31m the time.', annotations: { readOnlyHint: true }, run: () => 'noon' },
  })
  await check(server.url)
  expect(said).toContain('test 1, over streamable')
  expect(said).toContain('now: Tells [31m the time.')
  expect(said).toMatch(/called {5}now in \d+ ms/)
  expect(said).toContain('result     noon')
  expect(said).toContain('requests cannot name this URL: its address is private')
  expect(said).toContain('the gateway can use this server')
  expect([server.ran, process.exitCode]).toEqual([['now'], undefined])
})

test('credentials come from the environment, and are not printed', async () => {
  const server = await serve({
    who: { annotations: { readOnlyHint: true }, run: (_, { headers }) => `${headers.authorization}` },
  })
  vi.stubEnv('CHECK_TOKEN', 'secret-token-1')
  await check(server.url, { tokenEnv: 'CHECK_TOKEN' })
  vi.unstubAllEnvs()
  expect(said).toContain('result     Bearer [redacted]')
  await expect(check(server.url, { tokenEnv: 'NO_SUCH_TOKEN' })).rejects.toThrow('NO_SUCH_TOKEN is not set')
})

test('problems are printed with advice', async () => {
  const intercept = (_: unknown, response: { writeHead(status: number): { end(): void } }) => {
    response.writeHead(401).end()
    return true
  }
  await check((await serve({}, { intercept: intercept as never })).url, { json: true })
  expect(JSON.parse(said)).toMatchObject({
    isOk: false,
    findings: [
      {
        level: 'problem',
        message: 'the server answered 401: it has no readable resource metadata (RFC 9728)',
        next: expect.stringContaining('--token-env'),
      },
      {},
    ],
  })
  expect(process.exitCode).toBe(1)
  said = ''
  const failing = await serve({ 'a tool': () => ({ content: [], isError: true }) })
  await check(failing.url, { call: 'a tool' })
  expect(said).toMatch(/a tool: renamed for models/)
  expect(said).toMatch(/a tool: no description/)
  expect(said).toContain("problem: the call of 'a tool' failed")
  said = ''
  await check(failing.url, { call: 'nope' })
  expect(said).toContain("the server has no tool 'nope'")
})

/** @returns the path of a file with this section */
function writeConfig(mcp: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-mcp-'))
  ends.push(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'weir.json')
  writeFileSync(file, JSON.stringify({ kernel: { auth: 'off' }, plugins: { mcp } }))
  return file
}

test('a configured server is selected by its label', async () => {
  const server = await serve({ now: { annotations: { readOnlyHint: true }, run: () => 'noon' } })
  const file = writeConfig({ servers: [{ label: 'clock', url: server.url }] })
  await check('Clock', { config: file })
  expect(said).toContain('result     noon')
  expect(said).not.toContain('requests cannot name')
  await expect(check('watch', { config: file })).rejects.toThrow('configured labels: clock')
  await expect(check('watch')).rejects.toThrow('--config')
})

test('the revision of the protocol, and all that a stateless server supports', async () => {
  const server = await startStatelessServer({
    now: { annotations: { readOnlyHint: true }, run: () => 'noon' },
  })
  ends.push(() => server.close())
  await check(server.url)
  expect(said).toContain('protocol   2026-07-28, stateless (server/discover)')
  said = ''
  await check(server.url, { json: true })
  expect(JSON.parse(said).protocol).toEqual({
    era: 'stateless',
    version: '2026-07-28',
    supported: expect.arrayContaining(['2026-07-28']),
  })
  said = ''
  await check((await serve({ now: () => 'noon' })).url, { json: true })
  expect(JSON.parse(said).protocol).toEqual({
    era: 'sessions',
    version: expect.stringMatching(/^2025-/),
    supported: null,
  })
})

test('tools that the gateway cannot use, and why', async () => {
  const run = () => ''
  const outside = { type: 'object', properties: { a: { $ref: 'https://a.example/\u001b[31ms.json' } } }
  const either = {
    type: 'object',
    properties: { a: {}, b: {} },
    anyOf: [{ required: ['a'] }, { required: ['b'] }],
  }
  const server = await serve({
    ok: { inputSchema: either, run },
    bad: { inputSchema: outside, run },
    denied: run,
    unnamed: run,
  })
  const section = {
    servers: [
      { label: 's', url: server.url, allowedTools: ['ok', 'bad', 'denied', 'gone'], deniedTools: ['denied'] },
    ],
  }
  await check('s', { config: writeConfig(section) })
  expect(said).toMatch(
    /not usable bad: inputSchema refers to "https:\/\/a\.example\/.*", which is not in the schema/,
  )
  expect(said).not.toContain('\u001b')
  expect(said).toContain('denied: deniedTools names it')
  expect(said).toContain('unnamed: allowedTools does not name it')
  expect(said).toContain("hint: the configuration names 'gone', which the server does not have")
  expect(said).toContain('hint: ok: models get the alternatives of its schema as optional properties')
  expect(said).toContain('the gateway can use this server')
  said = ''
  await check((await serve({ bad: { inputSchema: outside, run } })).url, { json: true })
  expect(JSON.parse(said)).toMatchObject({
    isOk: false,
    tools: [],
    unusable: [{ name: 'bad', reason: expect.stringContaining('not in the schema') }],
    findings: [{ level: 'problem', message: 'the gateway can use none of the tools' }, {}],
  })
})

test.each<[string, (response: ServerResponse) => void, string, string]>([
  ['another path', (response) => response.writeHead(404).end(), 'the server answered 404', '/mcp'],
  ['a redirect', (response) => response.writeHead(302, { location: '/' }).end(), '302', 'final URL'],
  [
    'a page',
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    'not a message',
    'another path',
  ],
  [
    'JSON that is no message',
    (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
    'not a message',
    'another path',
  ],
])('an address that is no tool server: %s', async (_what, respond, message, next) => {
  const intercept = (_: unknown, response: ServerResponse) => {
    respond(response)
    return true
  }
  await check((await serve({}, { intercept })).url, { json: true })
  const [finding] = JSON.parse(said).findings
  expect(finding).toMatchObject({ level: 'problem', message: expect.stringContaining(message) })
  expect(finding.next).toContain(next)
})

const PARTS = join(import.meta.dirname, '../../../../test/parts/node_modules/@modelcontextprotocol')
const EVERYTHING = join(PARTS, 'server-everything/dist/index.js')

test.skipIf(!existsSync(EVERYTHING) && process.env.WEIR_TEST_REQUIRE_SERVICES !== '1')(
  'the reference server',
  async () => {
    const server = { label: 'everything', command: process.execPath, args: [EVERYTHING, 'stdio'] }
    const call = { call: 'echo', arguments: '{"message":"hi"}' }
    await check('everything', { config: writeConfig({ servers: [server] }), ...call, json: true })
    expect(JSON.parse(said)).toMatchObject({
      isOk: true,
      transport: 'stdio',
      protocol: { era: 'sessions', version: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) },
      unusable: [],
      call: { tool: 'echo', isError: false, text: 'Echo: hi' },
    })
  },
)
