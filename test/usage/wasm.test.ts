/** Modules in the built gateway, on several threads and across restarts. */
import { appendFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import {
  type BuiltGateway,
  makeFolder,
  runCommand,
  startBuiltGateway,
  startSim,
  stopCommands,
  sumOf,
  until,
} from '../support/built-command.ts'

const folders: GuestFolder[] = []
afterEach(async () => {
  await stopCommands()
  for (const folder of folders.splice(0)) folder.remove()
})

function openFolder(): GuestFolder {
  const folder = new GuestFolder()
  folders.push(folder)
  return folder
}

interface Listed {
  readonly modules: {
    module_uuid: string
    module_meta: { name: string; access_count: number; created_at: string }
  }[]
  readonly metrics: Record<string, number>
}

const list = async (gateway: BuiltGateway) => (await (await gateway.get('/wasm')).json()) as Listed
const register = async (gateway: BuiltGateway, ...modules: unknown[]) => {
  const response = await gateway.send('POST', '/wasm', { modules })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
  return (JSON.parse(text) as { modules: { add_result: { Success: string } }[] }).modules[0].add_result
    .Success
}
const chat = (gateway: BuiltGateway, headers: Record<string, string> = {}) =>
  gateway.send(
    'POST',
    '/v1/chat/completions',
    { model: 'sim-1', messages: [{ role: 'user', content: 'hi' }] },
    headers,
  )

describe('over two data threads', () => {
  test('a new module runs on every thread at once, call counts are summed, and a counter is shared', async () => {
    const folder = openFolder()
    const gateway = await startBuiltGateway({
      plugins: { wasm: { roots: [folder.path], poolThreads: 2, timeoutMs: 20_000 } },
    })
    const uuid = await register(gateway, await folder.module('count', ['OnRequest'], { do: 'count' }))
    const calls = Array.from({ length: 100 }, async () => Number(await (await chat(gateway)).text()))
    const counts = (await Promise.all(calls)).sort((a, b) => a - b)
    expect(counts).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
    const { modules, metrics } = await list(gateway)
    expect(modules[0].module_meta.access_count).toBe(100)
    expect(metrics).toMatchObject({ total_executions: 100, successful_executions: 100 })
    expect(sumOf(await gateway.metrics('counter'), 'weir_wasm_executions_total')).toBe(100)
    expect((await gateway.send('DELETE', `/wasm/${uuid}`)).status).toBe(200)
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await chat(gateway)).status))
    // Without a worker the handler responds 503; the module no longer responds.
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(gateway.command.lines.filter((line) => line.includes('Warning'))).toEqual([])
  })

  test('log lines of a module carry its name, the request id and their level; a registration is audited', async () => {
    const folder = openFolder()
    const auth = { controlPlaneKeys: ['ops:Ops:admin:admin-key'], apiKey: 'key', auditLog: false }
    const gateway = await startBuiltGateway({
      kernel: { log: { level: 'info' } },
      plugins: { wasm: { roots: [folder.path], timeoutMs: 20_000 }, auth },
    })
    const module = await folder.module('talker', ['OnRequest'], { do: 'log', secret: 'hidden-value' })
    const response = await gateway.send(
      'POST',
      '/wasm',
      { modules: [module] },
      { authorization: 'Bearer admin-key' },
    )
    expect(response.status).toBe(200)
    await chat(gateway, { authorization: 'Bearer key', 'x-request-id': 'req-of-mine' })
    await gateway.command.line(/an error line/)
    const lines = gateway.command.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
    const guest = lines.filter(
      ({ module, request_id }) => module === 'talker' && request_id === 'req-of-mine',
    )
    expect(guest.map(({ level, msg }) => [level, msg])).toEqual([
      ['info', 'an info line'],
      ['warn', 'a warning, ä'],
      ['error', 'an error line'],
    ])
    expect(lines).toContainEqual(
      expect.objectContaining({
        audit: true,
        principal: 'auth:ops',
        module: 'talker',
        sha256: expect.any(String),
      }),
    )
    expect(gateway.command.lines.join('\n')).not.toContain('hidden-value')
    const metrics = await gateway.metrics()
    const talker = 'module="talker"'
    expect(metrics.get(`weir_wasm_module_events_total{${talker},name="seen",label="loud"}`)).toBe(2)
    expect(metrics.get(`weir_wasm_module_values_sum{${talker},name="words",label=""}`)).toBe(3)
    const depth = `weir_wasm_module_gauge{${talker},name="depth",label="deep"}`
    await expect.poll(async () => (await gateway.metrics()).get(depth)).toBe(-4)
  })

  test('looping modules delay neither other requests nor the shutdown for long', async () => {
    const folder = openFolder()
    const sim = await startSim('--ttft-ms', '0', '--itl-ms', '0')
    const gateway = await startBuiltGateway({
      plugins: { wasm: { roots: [folder.path], timeoutMs: 400, breaker: { failures: 1_000 } } },
      workers: [{ url: sim.url }],
    })
    await register(gateway, await folder.module('looper', ['OnRequest'], { do: 'loop', when: 'x-loop' }))
    expect((await chat(gateway)).status).toBe(200)
    const looping = Array.from({ length: 6 }, () => chat(gateway, { 'x-loop': '1' }))
    expect((await gateway.get('/health')).status).toBe(200)
    expect((await Promise.all(looping)).map(({ status }) => status)).toEqual(new Array(6).fill(200))
    expect((await chat(gateway)).status).toBe(200)
    const { metrics } = await list(gateway)
    expect(metrics.failed_executions).toBeGreaterThanOrEqual(2)
    const last = chat(gateway, { 'x-loop': '1' }).catch(() => null)
    const { code } = await gateway.command.stop()
    expect(code).toBe(0)
    await last
  })
})

test('a data thread that replaces a crashed one has the modules', async () => {
  const folder = openFolder()
  const crash = { $path: fileURLToPath(new URL('../fixtures/crash-plugin.ts', import.meta.url)) }
  const gateway = await startBuiltGateway({
    kernel: { log: { level: 'error' } },
    plugins: { wasm: { roots: [folder.path], timeoutMs: 20_000 }, crash },
  })
  await register(
    gateway,
    await folder.module('tea', ['OnRequest'], { head: '{"action":"reject","status":418}' }),
  )
  for (let i = 0; i < 10; i++) expect((await chat(gateway)).status).toBe(418)
  await until(async () => {
    const reply = await gateway.send('POST', '/crash/1')
    return ((await reply.json()) as { isMeant: boolean }).isMeant
  })
  await gateway.command.line(/data thread ended unexpectedly/)
  await until(async () => ((await (await gateway.get('/thread')).json()) as { thread: number }).thread === 1)
  for (let i = 0; i < 30; i++) expect((await chat(gateway)).status).toBe(418)
  expect((await gateway.command.stop()).code).toBe(0)
})

describe('over a restart', () => {
  test('with storage, modules are restored with the same ids, order and behaviour', async () => {
    const folder = openFolder()
    const plugins = { wasm: { roots: [folder.path], timeoutMs: 20_000 }, storage: { dir: makeFolder() } }
    const first = await startBuiltGateway({ plugins })
    const reject = { head: '{"action":"reject","status":418}', body: 'tea' }
    await register(first, await folder.module('mark', ['OnRequest'], { head: '{"action":"continue"}' }))
    await register(first, await folder.module('tea', ['OnRequest'], reject))
    const removed = await register(first, await folder.module('gone', ['OnRequest']))
    await first.send('DELETE', `/wasm/${removed}`)
    const before = (await list(first)).modules
    await first.command.stop()
    const second = await startBuiltGateway({ plugins })
    const stable = (modules: Listed['modules']) =>
      modules.map(({ module_uuid, module_meta }) => [module_uuid, module_meta.name, module_meta.created_at])
    expect(stable((await list(second)).modules)).toEqual(stable(before))
    const response = await chat(second)
    expect([response.status, await response.text()]).toEqual([418, 'tea'])
    await second.command.stop()
    const forgetting = await startBuiltGateway({ plugins: { ...plugins, wasm: { savedModules: 'forget' } } })
    expect((await list(forgetting)).modules).toEqual([])
  })

  test('without storage, no module is restored', async () => {
    const folder = openFolder()
    const module = await folder.module('a', ['OnRequest'])
    const first = await startBuiltGateway({ plugins: { wasm: { roots: [folder.path], timeoutMs: 20_000 } } })
    await register(first, module)
    await first.command.stop()
    expect(
      (
        await list(
          await startBuiltGateway({ plugins: { wasm: { roots: [folder.path], timeoutMs: 20_000 } } }),
        )
      ).modules,
    ).toEqual([])
  })

  test('a changed module file is not loaded, with an error, and can still be removed', async () => {
    const folder = openFolder()
    const plugins = { wasm: { roots: [folder.path], timeoutMs: 20_000 }, storage: { dir: makeFolder() } }
    const first = await startBuiltGateway({ plugins })
    const module = await folder.module('changed', ['OnRequest'])
    const uuid = await register(first, module)
    await first.command.stop()
    appendFileSync(module.file_path, Buffer.from([0, 2, 1, 120]))
    const second = await startBuiltGateway({ plugins })
    await second.command.line(/has changed since it was registered.*saved wasm module not loaded/)
    expect((await list(second)).modules).toEqual([])
    expect((await second.send('DELETE', `/wasm/${uuid}`)).status).toBe(200)
    expect((await second.send('DELETE', `/wasm/${uuid}`)).status).toBe(400)
  })

  test('a missing module with on_failure closed prevents the start, with advice', async () => {
    const folder = openFolder()
    const plugins = { wasm: { roots: [folder.path], timeoutMs: 20_000 }, storage: { dir: makeFolder() } }
    const first = await startBuiltGateway({ plugins })
    const module = await folder.module('guard', ['OnRequest'], {}, { on_failure: 'closed' })
    await register(first, module)
    await first.command.stop()
    rmSync(module.file_path)
    const { writeFileSync } = await import('node:fs')
    const file = `${makeFolder()}/weir.json`
    writeFileSync(file, JSON.stringify({ kernel: { port: 0 }, plugins: { auth: {}, ...plugins } }))
    const second = runCommand(['serve', '--config', file])
    const { code, stderr } = await second.ended
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/guard.*with on_failure closed, cannot be loaded.*cannot be opened.*forget/s)
  })
})
