/** Reloading settings: policies in use apply them. */
import { expect, test } from 'vitest'
import { fleetOf, PolicyThread, pickRequest, pickSlot } from '../../../test/support/policy-fleet.ts'
import { applyReload, RELOADS } from './config.ts'

const defaults = () => structuredClone(new PolicyThread().state.config)

test('every reloadable setting exists, and settings that size memory and timers are not reloadable', () => {
  const config = defaults() as unknown as Record<string, Record<string, unknown> | boolean>
  for (const path of RELOADS) {
    const [name, key] = path.split('.')
    expect(key === undefined ? config[name] : (config[name] as Record<string, unknown>)[key]).toBeDefined()
  }
  for (const fixed of ['cacheAware.maxBytes', 'manual.maxSessions', 'consistentHashing.virtualNodes'])
    expect(RELOADS).not.toContain(fixed)
})

test('a session policy in use assigns new sessions by the new mode', () => {
  const thread = new PolicyThread({ manual: { assignmentMode: 'min_load' } })
  const policy = thread.policy('manual')
  const fleet = fleetOf(3)
  fleet[0].inFlight = 0
  fleet[1].inFlight = 5
  fleet[2].inFlight = 5
  const session = (key: string) => pickRequest({ headers: { 'x-smg-routing-key': key } })
  for (const key of ['a', 'b', 'c']) expect(pickSlot(policy, fleet, session(key))).toBe(0)
  const next = defaults()
  applyReload(thread.state.config, { ...next, manual: { ...next.manual, assignmentMode: 'min_group' } })
  expect(new Set(['d', 'e'].map((key) => pickSlot(policy, fleet, session(key))))).toEqual(new Set([1, 2]))
  // Existing sessions keep their worker.
  expect(pickSlot(policy, fleet, session('a'))).toBe(0)
  policy.close?.()
})

test('thresholds of KV cache use enable and disable load reports', () => {
  const thread = new PolicyThread()
  const wants = () => thread.registry.find('cache_aware')?.options.readsLoads
  expect(wants()).toBe(false)
  const next = defaults()
  applyReload(thread.state.config, {
    ...next,
    cacheAware: { ...next.cacheAware, overloadTokenUsageThreshold: 0.9 },
  })
  expect(wants()).toBe(true)
  applyReload(thread.state.config, defaults())
  expect(wants()).toBe(false)
})
