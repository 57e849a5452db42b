/**
 * Requests that end at any step of any chain of hooks, by the client or by an error: no further hook runs, onDone runs
 * once, and permits, counts and gauges are as before.
 */
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { Auth, type Plugin, type PluginManifest, ToolCallGuards } from '#kernel'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'
import { type Leaving, LeavingTraces, type Outcome, type Plan } from '../support/leaving-traces.ts'
import { startToolServer } from '../support/mcp/tool-server.ts'
import {
  type Answer,
  jsonAnswer,
  type RecordedRequest,
  type Script,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { staticWorkers } from '../support/static-workers.ts'
import { chatAnswer, openResponses } from './responses/responses-fleet.ts'

const WAYS: readonly Leaving[] = ['fin', 'rst', 'fail']
const LIMITS = { maxConcurrentRequests: 1, queueSize: 0 }

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

interface Site {
  readonly traces: LeavingTraces
  run(plan: Plan): Promise<Outcome>
  /** Requests in flight at workers, permits, open requests: all 0 when idle. */
  held(): Promise<Record<string, number>>
}

/** An asynchronous access check, so that a client may disconnect during it. */
function slowAccess(traces: LeavingTraces): Plugin {
  const services: Pick<PluginManifest, 'provides'> = { provides: [Auth] }
  return plugin(
    'slow-access',
    (host) =>
      host.provide(Auth, {
        check: async (access) => {
          if (access === 'api') await traces.step('access', 'check', undefined)
          return { tenant: 'auth:t', role: 'admin' }
        },
        ownerOf: () => null,
        recheck: (identity) => identity,
        isGatewayKey: () => false,
      }),
    services,
  )
}

function hooking(traces: LeavingTraces): Plugin[] {
  return [0, 1].map((index) => plugin(`hooks-${traces.names[index]}`, (host) => traces.hook(host, index)))
}

async function heldBy(gateway: TestGateway): Promise<Record<string, number>> {
  const reply = await fetch(`${gateway.url}/limits`)
  const { use } = (await reply.json()) as { use: { inUse: number; waiting: number } }
  const text = await (await fetch(gateway.metricsUrl ?? '')).text()
  const gauges = [
    ...text.matchAll(/^(weir_(?:http_connections|worker_requests)_active)(?:\{[^}]*\})? (\d+)$/gm),
  ]
  return {
    permits: use.inUse,
    waiting: use.waiting,
    ...Object.fromEntries(gauges.map(([, name, value]) => [name, Number(value)])),
  }
}

async function relaySite(answer: Script): Promise<Site> {
  const traces = new LeavingTraces()
  const worker = await startScriptedWorker()
  worker.script('POST /echo', answer)
  const workers = staticWorkers([{ url: worker.url }])
  const gateway = await startGateway({
    own: [slowAccess(traces), workers.plugin, ...hooking(traces)],
    plugins: { limits: LIMITS, metrics: {} },
    kernel: { retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1 }, breaker: { enabled: false } },
  })
  cleanups.push(async () => {
    await gateway.stop()
    await worker.close()
  })
  return {
    traces,
    run: (plan) =>
      traces.run(gateway.port, '/relay', JSON.stringify({ model: 'm', text: 'x'.repeat(200) }), plan),
    held: async () => ({
      ...(await heldBy(gateway)),
      inFlight: workers.balance().inFlight(workers.balance().workers[0].slot),
    }),
  }
}

function answerOf(script: Script, request: RecordedRequest): Answer | Promise<Answer> {
  return typeof script === 'function' ? script(request) : script
}

/** A turn with two generations and a tool call between them, whose guard is asynchronous too. */
async function toolSite(): Promise<Site> {
  const traces = new LeavingTraces()
  const tools = await startToolServer({
    echo: { run: () => traces.step('tool', 'run', 'heard'), inputSchema: { type: 'object' } },
  })
  const guard = plugin(
    'guard',
    (host) => {
      const guards = host.use(ToolCallGuards)
      guards.add({
        name: 'guard',
        check: () => traces.step('guard', 'check', { action: 'continue' } as const),
      })
    },
    { uses: [ToolCallGuards] },
  )
  const fleet = await openResponses(undefined, {
    own: [slowAccess(traces), ...hooking(traces), guard],
    plugins: {
      auth: false,
      limits: LIMITS,
      metrics: {},
      mcp: { clientServers: { allowsPrivate: true } },
    },
  })
  cleanups.push(() => tools.close())
  const [worker] = fleet.workers
  const call = chatAnswer({ tool_calls: [{ id: 'c', name: 'echo', arguments: '{}' }] })
  const body = JSON.stringify({
    model: 'test-model',
    input: 'go',
    stream: true,
    tools: [{ type: 'mcp', server_label: 'echoes', server_url: tools.url, require_approval: 'never' }],
  })
  worker.script('POST /v1/chat/completions', (request) =>
    answerOf(request.body.includes('heard') ? chatAnswer('done') : call, request),
  )
  return {
    traces,
    run: (plan) => traces.run(fleet.gateway.port, '/v1/responses', body, plan),
    held: () => heldBy(fleet.gateway),
  }
}

async function expectReleased(site: Site, where: string): Promise<void> {
  await expect
    .poll(() => site.held(), { interval: 5, message: where })
    .toMatchObject({ permits: 0, waiting: 0, weir_worker_requests_active: 0 })
}

function expectOver({ trace, late, ends }: Outcome, where: string): void {
  expect(late, `${where}: ran for a request that was over`).toEqual([])
  // The request did not arrive.
  if (trace.length === 0) return
  expect(ends, `${where}: number of onDone calls`).toEqual([1, 1])
}

const SITES: Record<string, () => Promise<Site>> = {
  'a non-streamed response': () => relaySite(jsonAnswer({ a: 'b' })),
  'a stream': () => relaySite(sseAnswer(['1', { waitMs: 2 }, '2', { waitMs: 2 }, '3'])),
  'a rejected request that is retried': () => relaySite(jsonAnswer({}, { status: 503 })),
  'a request that the worker drops': () => relaySite({ kind: 'drop', how: 'close' }),
  'a stream that is reset': () => relaySite(sseAnswer(['1', { waitMs: 2 }, { drop: 'reset' }])),
  'a turn with tools': toolSite,
}

describe.each(Object.entries(SITES))('%s', (_what, open) => {
  test('a disconnect or failure in any hook ends the request once', async () => {
    const site = await open()
    const whole = await site.run({ step: -1, how: 'fin' })
    expectOver(whole, 'no disconnect')
    expect(whole.trace.length).toBeGreaterThan(10)
    for (const how of WAYS) {
      if (how !== 'fail') {
        const outcome = await site.run({ step: -1, how, inBody: true })
        expectOver(outcome, `left by ${how} in the body`)
        expect(outcome.trace.filter((step) => step.startsWith('onRequest'))).toEqual([])
      }
      for (let step = 0; step < whole.trace.length; step++) {
        const where = `left by ${how} at step ${step} of ${whole.trace.join(', ')}`
        const outcome = await site.run({ step, how, turns: step % 3 })
        expectOver(outcome, `${where}, which was ${outcome.left}`)
        await expectReleased(site, where)
      }
    }
    // The gateway still serves; events may be split into other chunks.
    const after = await site.run({ step: -1, how: 'fin' })
    expect(new Set(after.trace)).toEqual(new Set(whole.trace))
  })

  test('a disconnect at any turn of the event loop ends the request once, for hooks of any delay', async () => {
    const site = await open()
    await fc.assert(
      fc.asyncProperty(
        fc.nat(60),
        fc.nat(4),
        fc.constantFrom<Leaving>('fin', 'rst'),
        async (afterTurns, turns, how) => {
          const where = `left by ${how} after ${afterTurns} turns`
          expectOver(await site.run({ step: -1, how, turns, afterTurns }), where)
        },
      ),
      { numRuns: 60 },
    )
    await expectReleased(site, 'all of them')
  })
})
