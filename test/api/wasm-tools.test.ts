/** Modules at OnToolCall, over responses with a real tool server: each of the three answers, and what a failure does. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startToolServer, type ToolServer } from '../../plugins/tools/mcp/fixtures/tool-server.ts'
import { buildModule } from '../../plugins/wasm/project/build.ts'
import type { ModuleDescriptor } from '../../plugins/wasm/wire.ts'
import { CHAT, openResponses, says } from './responses/responses-fleet.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const folder = mkdtempSync(join(tmpdir(), 'weir-tool-guard-'))
const file_path = join(folder, 'guard.wasm')
beforeAll(async () => {
  const directory = fileURLToPath(new URL('../../examples/wasm-tool-guard', import.meta.url))
  const built = await buildModule({ directory, outFile: file_path })
  if (!built.isOk) throw new Error(built.problem)
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true }))

async function guarded(
  config: Record<string, string>,
  more: Partial<ModuleDescriptor> = {},
  wasm: Record<string, unknown> = {},
) {
  const heard: unknown[] = []
  const server: ToolServer = await startToolServer({
    read: (input) => {
      heard.push(input)
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
  const ask = async (args: Record<string, unknown>) => {
    const call = { id: 'c1', name: 'read', arguments: JSON.stringify(args) }
    fleet.workers[0].once(CHAT, says({ tool_calls: [call] }))
    fleet.workers[0].once(CHAT, says('done'))
    const tool = { type: 'mcp', server_label: 'files', server_url: server.url, require_approval: 'never' }
    const reply = await fleet.create({ input: 'go', tools: [tool] })
    const ran = reply.output.find(({ type }: { type: string }) => type === 'mcp_call')
    return { ran, told: fleet.asked().at(-1).messages.at(-1).content }
  }
  return { ask, heard, added: { status: added.status, body: await added.json() }, get: fleet.get }
}

test('tools 4: a module lets a tool run', async () => {
  const { ask, heard, added } = await guarded({ denied: 'write' })
  expect(added.status).toBe(200)
  const { ran, told } = await ask({ path: 'a' })
  expect([ran.status, ran.output, told]).toEqual(['completed', 'the file', 'the file'])
  expect(heard).toEqual([{ path: 'a' }])
})

test('tools 4: a module refuses a call, and the model reads why', async () => {
  const { ask, heard, get } = await guarded({ denied: 'rea*' })
  const { ran, told } = await ask({ path: 'a' })
  expect(told).toContain('The tool read may not be used here.')
  expect(ran.status).toBe('failed')
  expect(JSON.stringify(ran.error)).toContain('may not be used here')
  expect(heard).toEqual([])
  const { modules } = (await (await get('/wasm')).json()) as {
    modules: { module_meta: { access_count: number } }[]
  }
  expect(modules[0].module_meta.access_count).toBe(1)
})

test('tools 4: a module changes the arguments; the client is shown what the model wrote', async () => {
  const { ask, heard } = await guarded({ hidden_arguments: 'token' })
  const { ran, told } = await ask({ path: 'größe', token: 'secret' })
  expect(heard).toEqual([{ path: 'größe', token: '[removed]' }])
  expect([told, ran.arguments]).toEqual(['the file', '{"path":"größe","token":"secret"}'])
})

test('tools 4: a module that must not fail and does stops the call, not the request', async () => {
  const { ask, heard, added } = await guarded({}, { fuel: 200_000 })
  expect(added.status).toBe(200)
  const { ran, told } = await ask({ path: 'a'.repeat(200_000) })
  expect([ran.status, heard]).toEqual(['failed', []])
  expect(told).toContain('stopped by a guard that failed')
})

test('tools 4: what a tool call cannot be matched by is refused at registration', async () => {
  const { added } = await guarded({}, { match: { routes: ['/v1/responses'] } })
  expect(added).toMatchObject({
    status: 400,
    body: { modules: [{ add_result: { Error: expect.stringContaining('match.routes') } }] },
  })
})

test('a setting that the module does not know is refused by name; those it has are listed', async () => {
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

/** Asks a service about the call; what it says decides, and no answer refuses. */
const ASKER = `
import { Action, config, handleToolCall, Request, ToolAction, ToolCall } from 'weir-gateway/wasm-sdk/assembly'

export function on_tool_call(): i32 {
  return handleToolCall((request: Request, call: ToolCall): ToolAction => {
    const fetched = request.fetched
    if (fetched === null) {
      const question = Action.fetch(config.text('url', ''), 'POST').withText(call.name + ' ' + call.text()).keep('größe')
      return ToolAction.fetch(question)
    }
    if (fetched.error !== null) return ToolAction.reject('nobody could be asked: ' + fetched.error!)
    const said = fetched.text()
    if (said == 'yes') return ToolAction.pass()
    return said.startsWith('{') ? ToolAction.withArguments(said) : ToolAction.reject(said + ' ' + request.state)
  })
}
`

test('tools 4: a module asks a service before it lets a tool run', { timeout: 300_000 }, async () => {
  const project = join(folder, 'asker')
  mkdirSync(join(project, 'assembly'), { recursive: true })
  writeFileSync(join(project, 'assembly', 'index.ts'), ASKER)
  const asker = join(folder, 'asker.wasm')
  const built = await buildModule({ directory: project, outFile: asker })
  if (!built.isOk) throw new Error(`${built.problem}\n${built.output}`)
  const answers = ['yes', 'not today:', '{"path":"b"}']
  const questions: string[] = []
  const service = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    request.on('end', () => {
      questions.push(text)
      response.end(answers.shift())
    })
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  const stop = () => {
    service.closeAllConnections()
    return new Promise<void>((resolve) => service.close(() => resolve()))
  }
  ends.push(stop)
  const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const { ask, heard, added } = await guarded(
    { url: `${origin}/may` },
    { file_path: asker, allowed_hosts: [origin] },
    { fetch: { timeoutMs: 20_000, origins: [origin], privateNetworks: ['127.0.0.0/8'] }, timeoutMs: 20_000 },
  )
  expect(added, JSON.stringify(added.body)).toMatchObject({ status: 200 })
  expect((await ask({ path: 'a' })).told).toBe('the file')
  const refused = await ask({ path: 'a' })
  expect([refused.ran.status, refused.told]).toEqual(['failed', expect.stringContaining('not today: größe')])
  expect((await ask({ path: 'a' })).told).toBe('the file')
  expect(questions).toEqual(Array(3).fill('read {"path":"a"}'))
  // What was refused never reached the server of the tool.
  expect(heard).toEqual([{ path: 'a' }, { path: 'b' }])
  await stop()
  ends.pop()
  const unanswered = await ask({ path: 'a' })
  expect([unanswered.ran.status, unanswered.told]).toEqual(['failed', expect.stringContaining('unreachable')])
  expect(heard).toHaveLength(2)
})
