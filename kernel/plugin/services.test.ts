/** Outages of services, and who cannot start without them. */
import { expect, test } from 'vitest'
import { token } from '../contracts/token.ts'
import { Services } from './services.ts'

const Store = token<object>('store')
const Clock = token<object>('clock')

test('an outage is reported by the provider of a service only, and ends with it', () => {
  const disk = { name: 'disk', provides: [Store] }
  const services = new Services([disk])
  let problem: string | null = null
  services.reportOutages(disk, Store, () => problem)
  expect([services.outage(Store), services.outage(Clock), services.outages()]).toEqual([null, null, []])
  problem = 'the disk is full'
  expect(services.outage(Store)).toBe('the disk is full')
  expect(services.outages()).toEqual([{ service: 'store', problem: 'the disk is full' }])
  expect(() => services.reportOutages({ name: 'x' }, Store, () => null)).toThrow(
    /plugin x .* without providing/,
  )
})

test('plugins depend on a service that they use, unless they declare it degradable', () => {
  const services = new Services([
    { name: 'a', uses: [Store] },
    { name: 'b', usesOptionally: [Store, Clock], degradable: [Clock] },
    { name: 'c', uses: [Store], degradable: [Store] },
    { name: 'd', provides: [Store] },
  ])
  expect([services.dependentsOf(Store), services.dependentsOf(Clock)]).toEqual([['a', 'b'], []])
})
