/** Modules at OnToolCall, over responses with a real tool server: each of the three actions, and failures. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { buildModule } from '../../plugins/wasm/project/build.ts'
import type { ModuleDescriptor } from '../../plugins/wasm/wire.ts'
import { BUILD_LIMIT_MS, builtModule } from '../../wasm-sdk/fixtures/built-modules.ts'
import { startToolServer, type ToolServer } from '../support/mcp/tool-server.ts'
import { CHAT, chatAnswer, openResponses } from './responses/responses-fleet.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const folder = mkdtempSync(join(tmpdir(), 'weir-tool-guard-'))
const file_path = join(folder, 'guard.wasm')
beforeAll(async () => {
  writeFileSync(file_path, await builtModule('examples/wasm-tool-guard'))
}, BUILD_LIMIT_MS)
afterAll(() => rmSync(folder, { recursive: true }))

async function guarded(
  config: Record<string, string>,
  more: Partial<ModuleDescriptor> = {},
  wasm: Record<string, unknown> = {},
  /** Answer of the model to a question between its call and its last answer. */
  verdict?: () => ReturnType<typeof chatAnswer>,
) {
  const inputs: unknown[] = []
  const server: ToolServer = await startToolServer({
    read: (input) => {
      inputs.push(input)
      return 'the file'
    },
  })
  ends.push(() => server.close())
  const fleet = await openResponses(undefined, {
    plugins: {
      wasm: { roots: [folder], fuelPerByte: 0, ...wasm },
      mcp: { clientServers: { allowsPrivate: true } },
    },
  })
  const module = {
    name: 'guard',
    file_path,
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnToolCall' }],
    config,
    ...more,
  }
  const added = await fleet.post('/wasm', { modules: [module] })
  const callTool = async (args: Record<string, unknown>) => {
    const call = { id: 'c1', name: 'read', arguments: JSON.stringify(args) }
    fleet.workers[0].once(CHAT, chatAnswer({ tool_calls: [call] }))
    if (verdict !== undefined) fleet.workers[0].once(CHAT, verdict())
    fleet.workers[0].once(CHAT, chatAnswer('done'))
    const tool = { type: 'mcp', server_label: 'files', server_url: server.url, require_approval: 'never' }
    const reply = await fleet.create({ input: 'go', tools: [tool] })
    const ran = reply.output.find(({ type }: { type: string }) => type === 'mcp_call')
    return { ran, toolResult: fleet.asked().at(-1).messages.at(-1).content }
  }
  return { callTool, inputs, added: { status: added.status, body: await added.json() }, get: fleet.get }
}

test('a module allows a tool call', async () => {
  const { callTool, inputs, added } = await guarded({ denied: 'write' })
  expect(added.status).toBe(200)
  const { ran, toolResult } = await callTool({ path: 'a' })
  expect([ran.status, ran.output, toolResult]).toEqual(['completed', 'the file', 'the file'])
  expect(inputs).toEqual([{ path: 'a' }])
})

test('a module rejects a call, and the model receives the reason', async () => {
  const { callTool, inputs, get } = await guarded({ denied: 'rea*' })
  const { ran, toolResult } = await callTool({ path: 'a' })
  expect(toolResult).toContain('The tool read may not be used here.')
  expect(ran.status).toBe('failed')
  expect(JSON.stringify(ran.error)).toContain('may not be used here')
  expect(inputs).toEqual([])
  const { modules } = (await (await get('/wasm')).json()) as {
    modules: { module_meta: { access_count: number } }[]
  }
  expect(modules[0].module_meta.access_count).toBe(1)
})

test('a module changes the arguments; the client receives those of the model', async () => {
  const { callTool, inputs } = await guarded({ hidden_arguments: 'token' })
  const { ran, toolResult } = await callTool({ path: 'größe', token: 'secret' })
  expect(inputs).toEqual([{ path: 'größe', token: '[removed]' }])
  expect([toolResult, ran.arguments]).toEqual(['the file', '{"path":"größe","token":"secret"}'])
})

test('a failing module with on_failure closed fails the call, not the request', async () => {
  const { callTool, inputs, added } = await guarded({}, { fuel: 200_000 })
  expect(added.status).toBe(200)
  const { ran, toolResult } = await callTool({ path: 'a'.repeat(200_000) })
  expect([ran.status, inputs]).toEqual(['failed', []])
  expect(toolResult).toContain('stopped by a guard that failed')
})

test('matchers that a tool call cannot evaluate are rejected at registration', async () => {
  const { added } = await guarded({}, { match: { routes: ['/v1/responses'] } })
  expect(added).toMatchObject({
    status: 400,
    body: { modules: [{ add_result: { Error: expect.stringContaining('match.routes') } }] },
  })
})

test('an unknown setting is rejected by name; known ones are listed', async () => {
  const { added } = await guarded({ denid: 'read' })
  expect(added.status).toBe(400)
  expect(JSON.stringify(added.body)).toContain(
    'config.denid is not a setting of the module; known: denied, root, path_arguments, hidden_arguments',
  )
  const { added: fine, get } = await guarded({ denied: 'read' })
  expect(fine.status).toBe(200)
  expect(await (await get('/wasm?detail=full')).json()).toMatchObject({
    modules: [{ module_state: { settings: { denied: { type: 'list' }, root: { type: 'text' } } } }],
  })
})

/** A module that requests a verdict from a service; no response rejects the call. */
const VERDICT_MODULE = `
import { Action, config, handleToolCall, Request, ToolAction, ToolCall } from 'weir-gateway/wasm-sdk/assembly'

export function on_tool_call(): i32 {
  return handleToolCall((request: Request, call: ToolCall): ToolAction => {
    const fetched = request.fetched
    if (fetched === null) {
      const verdictRequest = Action.fetch(config.text('url', ''), 'POST').withText(call.name + ' ' + call.text()).keep('größe')
      return ToolAction.fetch(verdictRequest)
    }
    if (fetched.error !== null) return ToolAction.reject('no verdict: ' + fetched.error!)
    const verdict = fetched.text()
    if (verdict == 'yes') return ToolAction.pass()
    return verdict.startsWith('{') ? ToolAction.withArguments(verdict) : ToolAction.reject(verdict + ' ' + request.state)
  })
}
`

test('a module requests a verdict from a service before a tool runs', { timeout: 300_000 }, async () => {
  const project = join(folder, 'verdictModule')
  mkdirSync(join(project, 'assembly'), { recursive: true })
  writeFileSync(join(project, 'assembly', 'index.ts'), VERDICT_MODULE)
  const verdictModule = join(folder, 'verdictModule.wasm')
  const built = await buildModule({ directory: project, outFile: verdictModule })
  if (!built.isOk) throw new Error(`${built.problem}\n${built.output}`)
  const verdicts = ['yes', 'not today:', '{"path":"b"}']
  const verdictRequests: string[] = []
  const service = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    request.on('end', () => {
      verdictRequests.push(text)
      response.end(verdicts.shift())
    })
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  const stop = () => {
    service.closeAllConnections()
    return new Promise<void>((resolve) => service.close(() => resolve()))
  }
  ends.push(stop)
  const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const { callTool, inputs, added } = await guarded(
    { url: `${origin}/may` },
    { file_path: verdictModule, allowed_hosts: [origin] },
    { fetch: { timeoutMs: 20_000, origins: [origin], privateNetworks: ['127.0.0.0/8'] }, timeoutMs: 20_000 },
  )
  expect(added, JSON.stringify(added.body)).toMatchObject({ status: 200 })
  expect((await callTool({ path: 'a' })).toolResult).toBe('the file')
  const refused = await callTool({ path: 'a' })
  expect([refused.ran.status, refused.toolResult]).toEqual([
    'failed',
    expect.stringContaining('not today: größe'),
  ])
  expect((await callTool({ path: 'a' })).toolResult).toBe('the file')
  expect(verdictRequests).toEqual(Array(3).fill('read {"path":"a"}'))
  // Rejected calls never reached the tool server.
  expect(inputs).toEqual([{ path: 'a' }, { path: 'b' }])
  await stop()
  ends.pop()
  const unreachable = await callTool({ path: 'a' })
  expect([unreachable.ran.status, unreachable.toolResult]).toEqual([
    'failed',
    expect.stringContaining('unreachable'),
  ])
  expect(inputs).toHaveLength(2)
})

test(
  'a module asks a model about a tool call before it runs',
  async () => {
    const guard_path = join(folder, 'guard-model.wasm')
    writeFileSync(guard_path, await builtModule('examples/wasm-guard-model'))
    const verdicts = ['safe', 'unsafe\nS1']
    const { callTool, inputs, added } = await guarded(
      { model: 'test-model' },
      { file_path: guard_path },
      { ask: { models: ['test-model'] }, timeoutMs: 20_000 },
      () => chatAnswer(verdicts.shift() ?? ''),
    )
    expect(added.status).toBe(200)
    const allowed = await callTool({ path: 'größe' })
    expect([allowed.ran.status, allowed.toolResult]).toEqual(['completed', 'the file'])
    const rejected = await callTool({ path: '/' })
    expect([rejected.ran.status, rejected.toolResult]).toEqual([
      'failed',
      expect.stringContaining('The guard model found this unsafe.'),
    ])
    expect(inputs).toEqual([{ path: 'größe' }])
  },
  BUILD_LIMIT_MS,
)
