/** A routing policy as a module in the built gateway: both data threads use its picks, and a failing module is suspended. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { BUILD_LIMIT_MS, builtModule } from '../../wasm-sdk/fixtures/built-modules.ts'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { type BuiltGateway, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const folder = mkdtempSync(join(tmpdir(), 'weir-pick-'))
const file_path = join(folder, 'teams.wasm')
beforeAll(async () => {
  writeFileSync(file_path, await builtModule('examples/wasm-pick-team'))
}, BUILD_LIMIT_MS)
const guests = new GuestFolder()
afterAll(() => {
  rmSync(folder, { recursive: true })
  guests.remove()
})

const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

const TEAMS = ['red', 'blue', 'blue']

async function setUp(more: Record<string, unknown> = {}): Promise<BuiltGateway> {
  for (const _ of TEAMS) {
    const worker = await startScriptedWorker()
    worker.script(CHAT, jsonAnswer({ choices: [] }))
    workers.push(worker)
  }
  const module = {
    name: 'teams',
    file_path,
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnPick' }],
    ...more,
  }
  return startBuiltGateway({
    kernel: { policy: 'wasm', log: { level: 'error' } },
    plugins: {
      crash: { $path: fileURLToPath(new URL('../fixtures/crash-plugin.ts', import.meta.url)) },
      wasm: { pick: { headers: ['x-team'] }, modules: [module] },
    },
    workers: workers.map(({ url }, index) => ({
      url,
      runtime_type: 'sglang',
      models: [{ id: 'test-model' }],
      labels: { team: TEAMS[index] },
    })),
  })
}

/** Sends requests on new connections until both threads have served one. @returns the number of requests */
async function sendAs(gateway: BuiltGateway, team: string, atLeast: number): Promise<number> {
  const threads = new Set<string | null>()
  let sent = 0
  await until(async () => {
    const body = { model: 'test-model', messages: [] }
    const response = await gateway.send('POST', CHAT.slice(5), body, { 'x-team': team })
    expect(response.status).toBe(200)
    await response.text()
    sent++
    return threads.add(response.headers.get('x-thread')).size === 2 && sent >= atLeast
  })
  return sent
}

async function callsOf(gateway: BuiltGateway, outcome: string): Promise<number> {
  const series = `weir_wasm_executions_total{module="teams",attach_point="OnPick",outcome="${outcome}"}`
  return (await gateway.metrics()).get(series) ?? 0
}

const taken = () => workers.map((worker) => worker.requestsTo(CHAT).length)

test('requests of a team go to its own workers, on both threads', { timeout: 120_000 }, async () => {
  const gateway = await setUp()
  const red = await sendAs(gateway, 'red', 20)
  expect(taken()).toEqual([red, 0, 0])
  const blue = await sendAs(gateway, 'blue', 20)
  const [first, ...others] = taken()
  expect([first, others[0] + others[1]]).toEqual([red, blue])
  expect(await callsOf(gateway, 'pick')).toBe(red + blue)
})

test('a module that always fails is suspended on both threads, and every request is served', {
  timeout: 120_000,
}, async () => {
  const gateway = await setUp({ file_path: await guests.guest('failing', 'picking'), config: { do: 'trap' } })
  const sent = await sendAs(gateway, 'red', 40)
  expect(taken().reduce((sum, count) => sum + count)).toBe(sent)
  const failed = await callsOf(gateway, 'error')
  // A call may be in progress on the other thread while the fifth fails.
  expect([failed >= 5, failed <= 6]).toEqual([true, true])
})
