import { expect, test } from 'vitest'
import type { Logger } from '#kernel'
import { fleetOf, PolicyThread, pickSlot } from '../../../test/support/policy-fleet.ts'

function listeningLog(): { log: Logger; warnings: [object, string][] } {
  const warnings: [object, string][] = []
  const ignore = () => {}
  const log: Logger = {
    debug: ignore,
    info: ignore,
    error: ignore,
    warn: (fields, message) => warnings.push([fields, message]),
    child: () => log,
  }
  return { log, warnings }
}

test('passthrough sends all requests to a single worker without a warning', () => {
  const { log, warnings } = listeningLog()
  const policy = new PolicyThread().policy('passthrough', { log })
  for (let i = 0; i < 10; i++) expect(pickSlot(policy, fleetOf(1))).toBe(0)
  expect(warnings).toEqual([])
})

test('with two workers passthrough warns once and picks the first available', () => {
  const { log, warnings } = listeningLog()
  const policy = new PolicyThread().policy('passthrough', { model: 'm', log })
  const fleet = fleetOf(2)
  expect(pickSlot(policy, fleet)).toBe(0)
  fleet[0].isAvailable = false
  expect(pickSlot(policy, fleet)).toBe(1)
  fleet[0].isAvailable = true
  expect(pickSlot(policy, fleet)).toBe(0)
  expect(warnings).toEqual([
    [{ model: 'm', workers: 2 }, 'policy passthrough uses only the first available of several workers'],
  ])
})
