/** Policy state is shared by the data threads: sessions and prompts keep their worker on every thread. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, sumOf, until } from '../support/built-command.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const SESSIONS = 12
/** A policy whose shared memory no thread creates at boot: the first data thread to pick requests it from control. */
const rendezvous = { $path: fileURLToPath(new URL('../fixtures/policy-plugin.ts', import.meta.url)) }
const crash = { $path: fileURLToPath(new URL('../fixtures/crash-plugin.ts', import.meta.url)) }

const workers: ScriptedWorker[] = []
afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

async function setUp(policy: string): Promise<BuiltGateway> {
  for (let i = 0; i < 4; i++) {
    const worker = await startScriptedWorker()
    worker.script(CHAT, jsonAnswer({ choices: [] }))
    workers.push(worker)
  }
  const specs = workers.map(({ url }) => ({ url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }))
  return startBuiltGateway({
    kernel: { policy, log: { level: 'error' } },
    plugins: { crash, rendezvous },
    workers: specs,
  })
}

interface Served {
  readonly worker: number
  readonly thread: string | null
}

/** Sends one request of a session on a new connection. */
async function send(gateway: BuiltGateway, session: number): Promise<Served> {
  const before = workers.map((worker) => worker.requestsTo(CHAT).length)
  const content = `${session} is the number of this session. `.repeat(40)
  const body = { model: 'test-model', messages: [{ role: 'user', content }] }
  const response = await gateway.send('POST', CHAT.slice(5), body, {
    'x-weir-routing-key': `session-${session}`,
    'x-rendezvous-key': `session-${session}`,
  })
  expect(response.status).toBe(200)
  await response.text()
  const worker = workers.findIndex((candidate, index) => candidate.requestsTo(CHAT).length > before[index])
  return { worker, thread: response.headers.get('x-thread') }
}

/** Sends requests of every session until both threads have served it. */
async function homesOf(gateway: BuiltGateway): Promise<number[]> {
  const homes: number[] = []
  for (let session = 0; session < SESSIONS; session++) {
    const threads = new Set<string | null>()
    const taken = new Set<number>()
    await until(async () => {
      const { worker, thread } = await send(gateway, session)
      taken.add(worker)
      return threads.add(thread).size === 2
    })
    expect([...taken]).toHaveLength(1)
    homes.push(...taken)
  }
  return homes
}

test.each(['cache_aware', 'manual', 'rendezvous'])(
  '%s: a session has one worker on both threads, also after one of them has died and been replaced',
  async (policy) => {
    const gateway = await setUp(policy)
    const homes = await homesOf(gateway)
    expect(new Set(homes).size).toBeGreaterThan(1)
    await until(async () => {
      const response = await gateway.send('POST', '/crash/1')
      return ((await response.json()) as { isMeant: boolean }).isMeant
    })
    // The dying thread may still respond, and connections in its queue are reset.
    await gateway.command.line(/data thread ended unexpectedly/)
    await until(
      async () => ((await (await gateway.get('/thread')).json()) as { thread: number }).thread === 1,
    )
    expect(await homesOf(gateway)).toEqual(homes)
    const samples = await gateway.metrics()
    if (policy === 'cache_aware') {
      expect(sumOf(samples, 'weir_cache_aware_policy_branch_total')).toBeGreaterThan(2 * SESSIONS)
      expect(samples.get('weir_cache_aware_policy_branch_total{branch="miss"}')).toBe(SESSIONS)
    } else if (policy === 'manual') {
      expect(samples.get('weir_manual_policy_branch_total{branch="vacant"}')).toBe(SESSIONS)
    } else {
      expect(samples.get('rendezvous_picks_total{branch="known"}')).toBeGreaterThan(2 * SESSIONS)
      expect(samples.get('rendezvous_workers')).toBe(4)
    }
  },
)
