import { expect, test } from 'vitest'
import { defineValidator, workerControls } from '#kernel'
import { Transports } from '../../../kernel/upstream/transports.ts'
import { defaultConfig } from '../../../test/support/workers-config.ts'
import { type WorkersConfig, workersConfig } from './config.ts'
import { HealthSchema } from './wire.ts'
import { buildWorker } from './worker.ts'
import { effectiveHealth, patchSpec, toWorkerSpec } from './worker-spec.ts'
import { readSpec } from './worker-validation.ts'

const controls = workerControls(new Transports())
const entryOf = (body: object, patch = {}) =>
  buildWorker(
    {
      id: 'id',
      spec: patchSpec(readSpec({ url: 'http://w:1', ...body }, controls), patch),
      findings: { connectionMode: 'http', runtimeType: 'sglang', models: [], labels: {} },
      origin: 'api',
      rank: null,
    },
    0,
    1,
    defaultConfig(),
  ).entry

const full = {
  bootstrap_port: 8998,
  bootstrap_host: '10.0.0.9',
  http_pool: {
    pool_max_idle_per_host: 3,
    pool_idle_timeout_secs: 50,
    timeout_secs: 0,
    connect_timeout_secs: 2,
  },
  resilience: {
    max_retries: 2,
    initial_backoff_ms: 10,
    max_backoff_ms: 100,
    max_wait_ms: 5_000,
    backoff_multiplier: 2,
    jitter_factor: 0,
    disable_retry: false,
    cb_failure_threshold: 4,
    cb_success_threshold: 1,
    cb_timeout_secs: 30,
    cb_window_secs: 120,
    disable_circuit_breaker: true,
    retryable_status_codes: [502, 529],
  },
}

test('connection, retry and breaker settings reach the routing threads, in milliseconds', () => {
  expect(entryOf(full)).toMatchObject({
    bootstrapPort: 8998,
    bootstrapHost: '10.0.0.9',
    httpPool: { maxIdle: 3, idleMs: 50_000, requestMs: 0, connectMs: 2_000 },
    resilience: {
      maxAttempts: 2,
      initialBackoffMs: 10,
      maxBackoffMs: 100,
      maxWaitMs: 5_000,
      backoffMultiplier: 2,
      jitterFactor: 0,
      disableRetry: false,
      failureThreshold: 4,
      successThreshold: 1,
      openMs: 30_000,
      disableBreaker: true,
      retryableStatuses: [502, 529],
    },
  })
})

test("unset and null values use the gateway's settings, and a worker without settings has null", () => {
  expect(entryOf({ resilience: { max_retries: 1, jitter_factor: null }, http_pool: {} })).toMatchObject({
    resilience: { maxAttempts: 1 },
    httpPool: null,
  })
  expect(entryOf({ resilience: { max_retries: 1, jitter_factor: null } }).resilience).toEqual({
    maxAttempts: 1,
  })
  expect(entryOf({ bootstrap_port: 0 })).toMatchObject({
    bootstrapPort: null,
    bootstrapHost: null,
    resilience: null,
    httpPool: null,
    dataParallel: null,
  })
})

test('a patch keeps members that it does not contain', () => {
  const { labels, ...before } = entryOf(full)
  expect(entryOf(full, { priority: 9, labels: { a: 'b' } })).toEqual({
    ...before,
    priority: 9,
    labels: { ...labels, a: 'b' },
  })
})

test.each([
  [{ resilience: { max_retries: 0 } }, 'resilience.max_retries'],
  [{ resilience: { backoff_multiplier: 0.5 } }, 'resilience.backoff_multiplier'],
  [{ resilience: { jitter_factor: 1.1 } }, 'resilience.jitter_factor'],
  [{ resilience: { cb_failure_threshold: 0 } }, 'resilience.cb_failure_threshold'],
  [{ resilience: { cb_timeout_secs: 3_000_000 } }, 'resilience.cb_timeout_secs'],
  [{ resilience: { retryable_status_codes: [200] } }, 'resilience.retryable_status_codes.0'],
  [{ resilience: { initial_backoff_ms: 11, max_backoff_ms: 10 } }, 'resilience.max_backoff_ms'],
  [{ http_pool: { timeout_secs: -1 } }, 'http_pool.timeout_secs'],
  [{ http_pool: { connect_timeout_secs: 1.5 } }, 'http_pool.connect_timeout_secs'],
  [{ bootstrap_port: 65_536 }, 'bootstrap_port'],
  [{ cost: -1 }, 'cost'],
  [{ cost: Number.POSITIVE_INFINITY }, 'cost'],
])('%j is rejected by field name', (body, field) => {
  expect(() => readSpec({ url: 'http://w:1', ...body }, controls)).toThrow(
    expect.objectContaining({ param: field }),
  )
})

const URL = 'http://10.0.0.1:8000'
const parse = (health: object): WorkersConfig => defineValidator(workersConfig).parse({ health })
const ofWorker = (health: object) => toWorkerSpec({ url: URL, health }).health

test('the configuration file has the member names of one worker, and the path of the probe', () => {
  const names = Object.keys(workersConfig.properties.health.properties)
  expect(names.sort()).toEqual([...Object.keys(HealthSchema.properties), 'endpoint'].sort())
})

test('a value means the same in the file and for one worker', () => {
  const values = {
    timeout_secs: 7,
    check_interval_secs: 11,
    success_threshold: 4,
    failure_threshold: 6,
    disable_health_check: true,
    drain_settle_secs: 13,
  }
  for (const [name, value] of Object.entries(values)) {
    const inFile = effectiveHealth({}, parse({ [name]: value }), false)
    expect(inFile, name).toEqual(effectiveHealth(ofWorker({ [name]: value }), parse({}), false))
    expect(inFile, name).not.toEqual(effectiveHealth({}, parse({}), false))
  }
})

test('settings of the worker override the file', () => {
  const config = parse({ timeout_secs: 7, disable_health_check: true, drain_settle_secs: 3 })
  const asked = ofWorker({ timeout_secs: 2, disable_health_check: false, drain_settle_secs: 0 })
  expect(effectiveHealth(asked, config, false)).toMatchObject({
    timeoutSecs: 2,
    isDisabled: false,
    drainSettleSecs: 0,
  })
  expect(effectiveHealth(ofWorker({ timeout_secs: 0 }), config, false).timeoutSecs).toBe(7)
})

test('a cloud service is probed only if its registration enables it', () => {
  expect(effectiveHealth({}, parse({}), true).isDisabled).toBe(true)
  expect(effectiveHealth(ofWorker({ disable_health_check: false }), parse({}), true).isDisabled).toBe(false)
})
