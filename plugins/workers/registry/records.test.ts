import { expect, test } from 'vitest'
import { workerFigures } from '../../../test/support/worker-figures.ts'
import { defaultConfig } from '../../../test/support/workers-config.ts'
import { toPendingRecord, toRecord } from './records.ts'
import { buildWorker } from './worker.ts'
import { toWorkerSpec } from './worker-spec.ts'

const config = defaultConfig()
const live = {
  status: () => 'ready' as const,
  inFlight: () => 3,
  breakerState: () => 'closed' as const,
  figures: () => workerFigures(),
}
const secret = 'wk-secret'
const spec = (more = {}) => toWorkerSpec({ url: 'https://api.openai.com', api_key: secret, ...more })
const worker = (more = {}) =>
  buildWorker(
    {
      id: 'id',
      spec: spec(more),
      findings: {
        connectionMode: 'http',
        runtimeType: 'external',
        models: [],
        labels: {},
        isExternal: true,
        provider: 'openai',
      },
      origin: 'api',
      rank: null,
    },
    0,
    1,
    config,
  )

test('no record contains the key of a worker', () => {
  const records = [
    toRecord(worker(), live),
    toPendingRecord({ id: 'id', spec: spec(), origin: 'api', reservedAtMs: 0 }, config, undefined, null),
  ]
  for (const record of records) expect(JSON.stringify(record)).not.toContain(secret)
})

test('empty members are omitted, and carried members are shown unchanged', () => {
  const { labels, models, model_id, job_status, ...record } = toRecord(
    worker({ http_pool: { timeout_secs: 5 } }),
    live,
  )
  expect([labels, models, model_id, job_status]).toEqual([undefined, undefined, undefined, undefined])
  expect(record).toMatchObject({ http_pool: { timeout_secs: 5 }, is_healthy: true, status: 'ready', load: 3 })
})

test('a cloud service has the provider of its host unless specified, and is not health-checked', () => {
  expect(toRecord(worker(), live)).toMatchObject({
    provider: 'openai',
    health: { disable_health_check: true },
  })
  expect(worker().entry.provider).toBe('openai')
  expect(toRecord(worker({ provider: 'mine' }), live)).toMatchObject({ provider: 'mine' })
  expect(worker({ provider: 'mine', labels: { provider: 'other' } }).entry.provider).toBe('mine')
  const checked = worker({
    health: { disable_health_check: false, check_interval_secs: 0, success_threshold: 0 },
  })
  expect(toRecord(checked, live).health).toMatchObject({
    disable_health_check: false,
    check_interval_secs: 60,
    success_threshold: 1,
  })
})
