/** The warm-up of data threads: the port is closed meanwhile, and nothing of it shows afterwards. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { makeFolder, readyGateway, runCommand, stopCommands, sumOf, until } from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'
import { startScriptedWorker } from '../support/scripted-worker.ts'

afterEach(stopCommands)

test('a gateway that warms up is alive, not ready, and has served no request', async () => {
  const worker = await startScriptedWorker()
  const [port, probePort] = [await freePort(), await freePort()]
  const file = join(makeFolder(), 'weir.json')
  const config = {
    kernel: { threads: 2, port, log: { level: 'info', access: true } },
    plugins: {
      auth: { tenantKeys: ['acme:acme-key'] },
      limits: {},
      chat: {},
      messages: {},
      responses: {},
      history: false,
      health: { probe: { port: probePort } },
      'http-workers': {},
      metrics: { port: 0 },
      workers: { workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }] },
    },
  }
  writeFileSync(file, JSON.stringify(config))
  const command = runCommand(['serve', '--config', file])
  const url = `http://127.0.0.1:${probePort}`
  await until(() =>
    fetch(`${url}/liveness`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  expect((await fetch(`${url}/readiness`)).status).toBe(503)
  await until(async () => (await fetch(`${url}/readiness`)).ok)
  expect((await fetch(`http://127.0.0.1:${port}/readiness`)).status).toBe(200)

  const gateway = await readyGateway(command)
  expect(worker.requestsTo('POST /v1/chat/completions')).toEqual([])
  const samples = await gateway.metrics()
  const paths = [...samples.keys()].filter((key) => /v1\/(chat|responses|messages)/.test(key))
  expect(paths.filter((key) => (samples.get(key) as number) > 0)).toEqual([])
  expect(sumOf(samples, 'weir_http_connections_active')).toBeLessThan(10)
  expect(command.lines.filter((line) => line.includes('warm-up'))).toEqual([])
  await worker.close()
})
