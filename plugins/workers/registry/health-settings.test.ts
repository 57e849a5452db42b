import { expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { type WorkersConfig, workersConfig } from './config.ts'
import { effectiveHealth } from './health-settings.ts'
import { toWorkerSpec } from './spec.ts'
import { HealthSchema } from './wire.ts'

const URL = 'http://10.0.0.1:8000'
const parse = (health: object): WorkersConfig => defineValidator(workersConfig).parse({ health })
const ofWorker = (health: object) => toWorkerSpec({ url: URL, health }).health

test('the file has the names that one worker has, and the path of the probe beside them', () => {
  const names = Object.keys(workersConfig.properties.health.properties)
  expect(names.sort()).toEqual([...Object.keys(HealthSchema.properties), 'endpoint'].sort())
})

test('a value says the same in the file and at the worker', () => {
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

test('the worker has the last word', () => {
  const config = parse({ timeout_secs: 7, disable_health_check: true, drain_settle_secs: 3 })
  const asked = ofWorker({ timeout_secs: 2, disable_health_check: false, drain_settle_secs: 0 })
  expect(effectiveHealth(asked, config, false)).toMatchObject({
    timeoutSecs: 2,
    isDisabled: false,
    drainSettleSecs: 0,
  })
  expect(effectiveHealth(ofWorker({ timeout_secs: 0 }), config, false).timeoutSecs).toBe(7)
})

test('a cloud service is probed only where it asks for it', () => {
  expect(effectiveHealth({}, parse({}), true).isDisabled).toBe(true)
  expect(effectiveHealth(ofWorker({ disable_health_check: false }), parse({}), true).isDisabled).toBe(false)
})
