/** The alert rules of the examples, evaluated by a real Prometheus server over a gateway that has faults. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import {
  type BuiltGateway,
  makeFolder,
  readyGateway,
  runCommand,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { endChildren } from '../support/child-processes.ts'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { hasPrometheus, type PrometheusServer, startPrometheus } from '../support/prometheus-server.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const MODEL = 'test-model'
const workers: ScriptedWorker[] = []
let database: PostgresServer | null = null

afterEach(async () => {
  await endChildren()
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
  await database?.remove()
  database = null
})

async function startWorkers(): Promise<ScriptedWorker[]> {
  for (let count = 0; count < 2; count++) {
    const worker = await startScriptedWorker()
    worker.script(CHAT, chatAnswer('Hi.'))
    workers.push(worker)
  }
  return workers
}

async function startGateway(folder: string): Promise<{ gateway: BuiltGateway; file: string }> {
  const file = join(folder, 'weir.json')
  const config = {
    kernel: {
      threads: 1,
      warmUp: false,
      port: 0,
      policy: 'round_robin',
      breaker: { openMs: 1_000 },
      retry: { maxAttempts: 2 },
      shutdown: { settleMs: 0 },
      log: { level: 'silent' },
    },
    plugins: {
      auth: { auditLog: false },
      health: {},
      policies: {},
      chat: {},
      'http-workers': {},
      metrics: { port: 0 },
      reload: {},
      ...(database !== null && {
        generations: {},
        postgres: { url: database.url },
        history: {},
        responses: {},
      }),
      workers: {
        workers: workers.map(({ url }) => ({ url, runtime_type: 'sglang', models: [{ id: MODEL }] })),
        health: { check_interval_secs: 1, timeout_secs: 1, failure_threshold: 2, success_threshold: 1 },
      },
    },
  }
  writeFileSync(file, JSON.stringify(config))
  const gateway = await readyGateway(runCommand(['serve', '--config', file]))
  await until(async () => (await gateway.get('/readiness')).ok)
  return { gateway, file }
}

async function chat(gateway: BuiltGateway, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < count; i++) {
    const response = await gateway.send('POST', '/v1/chat/completions', { model: MODEL, messages: [] })
    await response.text()
    statuses.push(response.status)
  }
  return statuses
}

/** Waits until exactly these alerts fire. */
async function expectAlerts(prometheus: PrometheusServer, ...names: string[]): Promise<void> {
  const expected = names.sort().join()
  let firing = ''
  await until(
    async () => {
      firing = (await prometheus.firing()).join()
      return firing === expected
    },
    () => `alerts ${expected || 'none'} (firing: ${firing || 'none'})`,
  )
}

/** True if at least these alerts fire: rates keep earlier errors for minutes. */
async function fire(prometheus: PrometheusServer, ...names: string[]): Promise<boolean> {
  const firing = await prometheus.firing()
  return names.every((name) => firing.includes(name))
}

test.skipIf(!hasPrometheus)(
  'each fault of a gateway fires its alerts, and its end resolves them',
  async () => {
    if (postgresSkipReason === null) database = await startPostgres()
    const [failing, other] = await startWorkers()
    const folder = makeFolder()
    const { gateway, file } = await startGateway(folder)
    const prometheus = await startPrometheus(join(folder, 'prometheus'), gateway.metricsUrl)
    await until(async () => (await prometheus.scrapes()) > 0)
    expect(await chat(gateway, 4)).toEqual([200, 200, 200, 200])
    await expectAlerts(prometheus)

    // Another worker serves the requests.
    failing.script(CHAT, jsonAnswer({ error: 'broken' }, { status: 500 }))
    expect(await chat(gateway, 20)).toEqual(Array(20).fill(200))
    await expectAlerts(prometheus, `WeirWorkerFailing ${failing.url}`)
    failing.script(CHAT, chatAnswer('Hi.'))
    await until(async () => {
      await chat(gateway, 4)
      return (await prometheus.firing()).length === 0
    })

    const config = readFileSync(file, 'utf8')
    writeFileSync(file, '{ "kernel": { "thread": 1 } }')
    gateway.command.signal('SIGHUP')
    await database?.stop()
    await expectAlerts(prometheus, 'WeirConfigReloadFailed', ...(database === null ? [] : ['WeirStoreDown']))
    writeFileSync(file, config)
    gateway.command.signal('SIGHUP')
    await database?.start()
    await expectAlerts(prometheus)

    await failing.close()
    await other.close()
    await until(async () => {
      await chat(gateway, 5)
      return fire(prometheus, 'WeirNoWorkerReady', 'WeirErrorRate', 'WeirModelWithoutWorker')
    })

    await gateway.command.stop()
    await until(() => fire(prometheus, 'WeirGatewayDown', 'WeirGatewayMissing'))
  },
)
