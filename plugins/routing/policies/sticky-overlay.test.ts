/** Requests with a routing key stay with their worker, under any policy. */
import { expect, test } from 'vitest'
import type { RelayContext } from '#kernel'
import { pickContext, TestBalance } from '../../../test/support/balance-parts.ts'
import { workerEntry } from '../../../test/support/worker-entry.ts'

const plain = pickContext()
const workers = [0, 1, 2, 3].map((slot) => workerEntry({ slot, models: ['m'] }))

function open(defaultPolicy: string, stickyRoutingKeys: boolean): TestBalance {
  const fleet = new TestBalance({ defaultPolicy }, { stickyRoutingKeys })
  fleet.register(...workers)
  return fleet
}

/** Slots picked for sequential requests of one kind. */
function slots(fleet: TestBalance, times: number, ctx: RelayContext): Set<number> {
  return new Set(
    Array.from({ length: times }, () => {
      const attempt = fleet.balance.pick(ctx, 'm')
      attempt.release()
      return attempt.worker.slot
    }),
  )
}

test.each(['x-weir-routing-key', 'x-smg-routing-key'])(
  'with the setting and %s a session has one worker; without the header the policy decides',
  (header) => {
    const fleet = open('round_robin', true)
    const keyed = (key: string) => pickContext({ [header]: key })
    const chosen = Array.from({ length: 30 }, (_, session) => {
      const first = slots(fleet, 1, keyed(`session-${session}`))
      slots(fleet, 1, plain)
      expect(slots(fleet, 10, keyed(`session-${session}`))).toEqual(first)
      return [...first][0]
    })
    expect(new Set(chosen).size).toBeGreaterThan(1)
    expect(slots(fleet, 4, plain)).toEqual(new Set([0, 1, 2, 3]))
    expect(slots(fleet, 4, keyed(''))).toEqual(new Set([0, 1, 2, 3]))
  },
)

test('without the setting the header has no effect', () => {
  const fleet = open('round_robin', false)
  expect(slots(fleet, 4, pickContext({ 'x-weir-routing-key': 'k' }))).toEqual(new Set([0, 1, 2, 3]))
})

test('the pick is counted under the name of the wrapped policy, and explained', () => {
  const fleet = open('round_robin', true)
  const attempt = fleet.balance.pick(pickContext({ 'x-weir-routing-key': 'k' }), 'm', { report: true })
  expect(attempt.policy).toBe('round_robin')
  expect(attempt.choice?.explanation).toMatch(/^sticky: /)
  expect(fleet.balance.pick(plain, 'm', { report: true }).choice?.explanation).not.toMatch(/^sticky: /)
})

test('a session moves while its worker is unavailable', () => {
  const fleet = open('random', true)
  const ctx = pickContext({ 'x-weir-routing-key': 'k' })
  const [home] = slots(fleet, 5, ctx)
  fleet.balance.setStatus(home, 'not_ready')
  const away = slots(fleet, 5, ctx)
  expect(away.size).toBe(1)
  expect(away.has(home)).toBe(false)
})

test.each(['manual', 'consistent_hashing'])('%s uses the key itself and is not wrapped', (policy) => {
  const fleet = open(policy, true)
  const ctx = pickContext({ 'x-weir-routing-key': 'k' })
  expect(slots(fleet, 10, ctx).size).toBe(1)
  expect(fleet.balance.pick(ctx, 'm', { report: true }).choice?.explanation ?? '').not.toMatch(/^sticky: /)
})

test('both policies are notified of removed workers, and closed', () => {
  const told: string[] = []
  const fleet = new TestBalance({ defaultPolicy: 'noting' }, { stickyRoutingKeys: true })
  fleet.balance.registry.register('noting', () => ({
    name: 'noting',
    needsBody: true,
    pick: () => 0,
    onWorkerRemoved: (slot) => void told.push(`left ${slot}`),
    close: () => void told.push('closed'),
  }))
  fleet.register(...workers)
  fleet.balance.pick(plain, 'm')
  fleet.register(...workers.slice(1))
  fleet.balance.close()
  expect(told).toEqual(['left 0', 'closed'])
})
