/** Third-party tool servers over all three transports. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { freePort } from '../../../test/support/free-port.ts'
import { addedMessages, mcpTool, only, TestLoop } from '../../../test/support/mcp/run-turn.ts'
import { scriptedModel } from '../../../test/support/mcp/scripted-model.ts'

const PARTS = join(import.meta.dirname, '../../../test/parts/node_modules/@modelcontextprotocol')
const EVERYTHING = join(PARTS, 'server-everything/dist/index.js')
const FILES = join(PARTS, 'server-filesystem/dist/index.js')
const isMissing = !existsSync(EVERYTHING) || !existsSync(FILES)
if (isMissing && process.env.WEIR_TEST_REQUIRE_SERVICES !== '1')
  console.warn('real tool servers are skipped: run npm ci in test/parts')
const realTest = test.skipIf(isMissing && process.env.WEIR_TEST_REQUIRE_SERVICES !== '1')

const ends: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** @returns its URL once it listens */
async function startEverything(mode: 'streamableHttp' | 'sse', path: string): Promise<string> {
  const port = await freePort()
  const child: ChildProcess = spawn(process.execPath, [EVERYTHING, mode], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  ends.push(() => void child.kill('SIGKILL'))
  const ready = Promise.withResolvers<void>()
  child.stderr?.on('data', (chunk: Buffer) => {
    if (/port|listening|running/i.test(chunk.toString())) ready.resolve()
  })
  child.once('exit', () => ready.reject(new Error('the server ended')))
  await ready.promise
  return `http://127.0.0.1:${port}${path}`
}

function openLoop(section: Record<string, unknown> = {}): TestLoop {
  const loop = new TestLoop(section)
  ends.push(() => loop.pool.close())
  return loop
}

const calls = [
  ['echo', { message: 'grüß' }],
  ['get-sum', { a: 1, b: 2 }],
  ['get-structured-content', { location: 'New York' }],
  ['trigger-long-running-operation', { duration: 0.2, steps: 2 }],
] as const

async function useEverything(loop: TestLoop, tool: Parameters<typeof mcpTool>): Promise<void> {
  const model = scriptedModel({ calls }, { text: 'done' })
  const events = await loop.run(model, { tools: [mcpTool(...tool)] })
  const results = only(events, 'call_done').map(({ result }) => result)
  expect(results.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed', 'completed'])
  expect(results[0].output).toBe('Echo: grüß')
  expect(results[1].output).toContain('3')
  expect(results[2].structured).toMatchObject({ temperature: expect.any(Number) })
  expect(events.at(-1)?.type).toBe('finished')
}

realTest(
  'server-everything over streamable HTTP',
  async () => {
    const url = await startEverything('streamableHttp', '/mcp')
    await useEverything(openLoop(), ['everything', url])
  },
  180_000,
)

realTest(
  'server-everything over the older event stream, detected automatically',
  async () => {
    const url = await startEverything('sse', '/sse')
    await useEverything(openLoop(), ['everything', url])
  },
  180_000,
)

realTest(
  'server-everything as a program',
  async () => {
    const server = { label: 'everything', command: process.execPath, args: [EVERYTHING, 'stdio'] }
    await useEverything(openLoop({ servers: [server] }), ['everything', null])
  },
  180_000,
)

realTest(
  'the filesystem server reads a file, and rejects one outside its folder',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-mcp-'))
    ends.push(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'a.txt'), 'inside')
    const server = { label: 'files', command: process.execPath, args: [FILES, folder] }
    const reads = [
      ['read_text_file', { path: join(folder, 'a.txt') }],
      ['read_text_file', { path: '/etc/passwd' }],
    ] as const
    const model = scriptedModel({ calls: reads }, { text: 'done' })
    const tool = mcpTool('files', null, { allowedTools: { isReadOnly: true } })
    const events = await openLoop({ servers: [server] }).run(model, { tools: [tool] })
    const listed = only(events, 'list_done')[0].tools.map(({ name }) => name)
    expect(listed).toContain('read_text_file')
    expect(listed).not.toContain('write_file')
    const [inside, outside] = only(events, 'call_done').map(({ result }) => result)
    expect(inside).toMatchObject({ status: 'completed', output: 'inside' })
    expect(outside).toMatchObject({ status: 'failed', error: { type: 'mcp_tool_execution_error' } })
  },
  180_000,
)

realTest(
  'results of server-everything: text of a base64 resource as text, images as images, links by name',
  async () => {
    const server = { label: 'everything', command: process.execPath, args: [EVERYTHING, 'stdio'] }
    const reads = [
      ['get-resource-reference', { resourceType: 'Blob', resourceId: 1 }],
      ['get-tiny-image', {}],
      ['get-resource-links', { count: 1 }],
      ['get-sum', { a: '1', b: 2 }],
    ] as const
    const model = scriptedModel({ calls: reads }, { text: 'done' })
    const events = await openLoop({ servers: [server] }).run(model, { tools: [mcpTool('everything', null)] })
    const texts = only(events, 'call_done').map(({ result }) => result.modelText)
    expect(texts[0]).toMatch(
      /\[resource demo:\/\/resource\/dynamic\/blob\/1\]\nResource 1: This is a base64 blob/,
    )
    expect(texts[1]).toMatch(/\[image: image\/png, \d+ bytes\]/)
    expect(texts[2]).toContain(
      '[link to resource demo://resource/dynamic/blob/1, Blob Resource 1, text/plain]',
    )
    expect(texts[3]).toBe("The arguments do not match the schema of the tool: 'a' must be a number.")
    expect(JSON.stringify(addedMessages(model, 1).at(-1))).toContain('data:image/png;base64,iVBOR')
  },
  180_000,
)
