/** Three gateways of one mesh: prompts and sessions keep their worker on every gateway, and all count each other's requests. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BuiltGateway, startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import {
  jsonAnswer,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

const CHAT = 'POST /v1/chat/completions'
const WORKERS = 4
const PROMPTS = 200
const AT_ONCE = 8
const SYSTEM_PROMPT = 'You answer questions about the weather of one town and nothing else. '.repeat(20)

interface Setting {
  /** Concerns of the mesh that are not shared. */
  readonly shares?: Record<string, boolean>
  readonly assignmentMode: string
}

/** Gateways that pick by prompt, or by session if the request names one. */
class Fleet {
  readonly workers: ScriptedWorker[] = []
  gateways: readonly BuiltGateway[] = []
  #valkey: ValkeyServer | null = null

  async start({ shares = {}, assignmentMode }: Setting): Promise<void> {
    const valkey = await startValkey()
    this.#valkey = valkey
    for (let number = 0; number < WORKERS; number++) {
      const worker = await startScriptedWorker()
      worker.script(CHAT, jsonAnswer({ id: String(number), choices: [] }))
      this.workers.push(worker)
    }
    const models = [{ id: 'test-model' }]
    const workers = this.workers.map(({ url }) => ({ url, runtime_type: 'sglang', models }))
    const policies = { stickyRoutingKeys: true, manual: { assignmentMode } }
    this.gateways = await Promise.all(
      ['gw-1', 'gw-2', 'gw-3'].map((name) => {
        const mesh = { name, secret: 'abcdefghijklmnopqrstuvwxyz', shares }
        const plugins = { mesh, 'mesh-valkey': { url: valkey.url }, policies }
        return startBuiltGateway({ kernel: { threads: 1 }, plugins, workers })
      }),
    )
    for (const gateway of this.gateways)
      await until(async () => {
        const status = (await (await gateway.get('/ha/status')).json()) as { node_count: number }
        return status.node_count === 3
      })
  }

  async stop(): Promise<void> {
    await stopCommands()
    for (const worker of this.workers.splice(0)) await worker.close()
    await this.#valkey?.remove()
  }

  /** @returns the number of the worker */
  async send(gateway: number, content: string, session?: string): Promise<number> {
    const body = { model: 'test-model', messages: [{ role: 'user', content }] }
    const headers: Record<string, string> = session === undefined ? {} : { 'x-weir-routing-key': session }
    const response = await this.gateways[gateway].send('POST', CHAT.slice(5), body, headers)
    expect(response.status).toBe(200)
    return Number(((await response.json()) as { id: string }).id)
  }

  /**
   * Sends one request for each number to the first gateway and, when the others have had its notes, one to another gateway.
   *
   * @param notes kind of the notes; null if the gateways share none
   * @returns the share that had the same worker
   */
  async followUps(
    notes: 'prefixes' | 'sessions' | null,
    first: (number: number) => Promise<number>,
    again: (gateway: number, number: number) => Promise<number>,
  ): Promise<number> {
    const homes = await each(first)
    expect(new Set(homes).size).toBe(WORKERS)
    if (notes !== null)
      for (const gateway of this.gateways.slice(1))
        await until(async () => {
          const samples = await gateway.metrics('counter')
          const received = samples.get(`weir_policy_notes_total{kind="${notes}",outcome="received"}`) ?? 0
          return received >= PROMPTS
        })
    const later = await each((number) => again(1 + (number % 2), number))
    return later.filter((worker, number) => worker === homes[number]).length / PROMPTS
  }

  /** Requests in flight by worker as a gateway sees them, those of the others included. */
  async loads(gateway: number): Promise<number[]> {
    const response = await this.gateways[gateway].get('/ha/workers')
    const states = (await response.json()) as { url: string; load: number }[]
    return this.workers.map(({ url }) => states.find((state) => state.url === url)?.load ?? -1)
  }

  /** Waits until a gateway sees these numbers of requests, whichever workers have them. */
  async untilLoads(gateway: number, expected: number[]): Promise<void> {
    await until(async () => `${(await this.loads(gateway)).sort()}` === `${expected}`)
  }
}

/** The results for the numbers of all prompts, in order. */
async function each(send: (number: number) => Promise<number>): Promise<number[]> {
  const results: number[] = []
  for (let from = 0; from < PROMPTS; from += AT_ONCE)
    results.push(...(await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => send(from + i)))))
  return results
}

const prompt = (number: number) => `${number * 7919} is the number of this conversation. ${SYSTEM_PROMPT}`

describe.skipIf(valkeySkipReason !== null)('gateways that share', () => {
  const fleet = new Fleet()
  // Each gateway would choose by its own number of sessions.
  beforeAll(() => fleet.start({ assignmentMode: 'min_group' }))
  afterAll(() => fleet.stop())

  test('follow-ups of prompts go to the same worker through other gateways', async () => {
    const kept = await fleet.followUps(
      'prefixes',
      (number) => fleet.send(0, prompt(number)),
      (gateway, number) => fleet.send(gateway, `${prompt(number)} And tomorrow?`),
    )
    console.log(`follow-ups of prompts at the same worker: ${(100 * kept).toFixed(1)} %`)
    expect(kept).toBeGreaterThanOrEqual(0.95)
  })

  test('sessions have the same worker on all gateways', async () => {
    const kept = await fleet.followUps(
      'sessions',
      (number) => fleet.send(0, 'Hello', `session-${number}`),
      (gateway, number) => fleet.send(gateway, 'Hello', `session-${number}`),
    )
    console.log(`sessions at the same worker: ${(100 * kept).toFixed(1)} %`)
    expect(kept).toBeGreaterThanOrEqual(0.95)
  })
})

describe.skipIf(valkeySkipReason !== null)('gateways without requests before', () => {
  // Measured durations of requests, which differ on a busy machine, would change picks.
  const fleet = new Fleet()
  beforeAll(() => fleet.start({ assignmentMode: 'random' }))
  afterAll(() => fleet.stop())

  test('picks count requests of other gateways, until these end or their gateway is killed', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    for (const worker of fleet.workers) worker.script(CHAT, sseAnswer([{ until: released }, '[DONE]']))
    // A new prompt goes to the least loaded worker.
    let number = 0
    const hold = (gateway: number) => {
      const messages = [{ role: 'user', content: prompt(number++) }]
      return fleet.gateways[gateway]
        .send('POST', CHAT.slice(5), { model: 'test-model', messages, stream: true })
        .then((response) => response.text())
        .catch(() => '')
    }
    const held = [hold(0), hold(0)]
    // Two requests through one gateway, six through the other: two for each worker, if the other sees the first.
    await fleet.untilLoads(1, [0, 0, 1, 1])
    for (const loads of [
      [0, 1, 1, 1],
      [1, 1, 1, 1],
      [1, 1, 1, 2],
      [1, 1, 2, 2],
      [1, 2, 2, 2],
      [2, 2, 2, 2],
    ]) {
      held.push(hold(1))
      await fleet.untilLoads(1, loads)
    }
    await fleet.untilLoads(2, [2, 2, 2, 2])
    expect(Object.values(await fleet.gateways[2].loads())).toEqual([0, 0, 0, 0])

    const killedAtMs = fleet.gateways[1].command.signal('SIGKILL')
    await fleet.untilLoads(2, [0, 0, 1, 1])
    console.log(`counts of a killed gateway end after ${Math.round(performance.now() - killedAtMs)} ms`)
    release()
    await Promise.all(held)
    await fleet.untilLoads(2, [0, 0, 0, 0])
  })
})

describe.skipIf(valkeySkipReason !== null)('gateways that share neither prefixes nor sessions', () => {
  const fleet = new Fleet()
  beforeAll(() => fleet.start({ assignmentMode: 'random', shares: { prefixes: false, sessions: false } }))
  afterAll(() => fleet.stop())

  test('follow-ups of prompts go to any worker', async () => {
    const kept = await fleet.followUps(
      null,
      (number) => fleet.send(0, prompt(number)),
      (gateway, number) => fleet.send(gateway, prompt(number)),
    )
    expect(kept).toBeLessThan(0.6)
  })

  test('a new session gets the same worker on all gateways at once', async () => {
    for (let number = 0; number < 40; number++) {
      const homes = await Promise.all(
        [0, 1, 2].map((gateway) => fleet.send(gateway, 'Hello', `new-${number}`)),
      )
      expect(new Set(homes).size).toBe(1)
    }
  })
})
