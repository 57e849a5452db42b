import { expect, test } from 'vitest'
import type { Host, WorkerStatus, WorkerType } from '#kernel'
import { readReadiness } from './readiness.ts'

type Fleet = [WorkerType, WorkerStatus][]

function host(fleet: Fleet, rest: { isDraining?: boolean; reason?: string; breakers?: string[] } = {}) {
  return {
    isDraining: rest.isDraining ?? false,
    readinessReason: () => rest.reason ?? null,
    balance: {
      workers: fleet.map(([workerType], slot) => ({ slot, workerType })),
      status: (slot: number) => fleet[slot][1],
      breakerState: (slot: number) => rest.breakers?.[slot] ?? 'closed',
    },
  } as unknown as Host
}

const tooFew = { status: 'not ready', reason: 'insufficient healthy workers' }

test('ready with the counts if one worker is ready', () => {
  const fleet: Fleet = [
    ['regular', 'ready'],
    ['regular', 'not_ready'],
    ['regular', 'ready'],
  ]
  expect(readReadiness(host(fleet))).toEqual({ status: 'ready', healthy_workers: 2, total_workers: 3 })
})

test('reports the number of ready workers with an open breaker', () => {
  const fleet: Fleet = [
    ['regular', 'ready'],
    ['regular', 'ready'],
    ['regular', 'failed'],
  ]
  const breakers = ['closed', 'half_open', 'open']
  expect(readReadiness(host(fleet, { breakers }))).toEqual({
    status: 'ready',
    healthy_workers: 2,
    total_workers: 3,
    open_breakers: 1,
  })
})

test.each<[string, Fleet]>([
  ['no workers', []],
  ['only a pending worker', [['regular', 'pending']]],
  ['only a draining worker', [['regular', 'draining']]],
  ['prefill without decode', [['prefill', 'ready']]],
  [
    'decode that is not ready',
    [
      ['prefill', 'ready'],
      ['decode', 'failed'],
    ],
  ],
])('%s is not ready', (_name, fleet) => {
  expect(readReadiness(host(fleet))).toEqual(tooFew)
})

test('one ready worker per role is enough for prefill and decode', () => {
  const fleet: Fleet = [
    ['prefill', 'ready'],
    ['decode', 'ready'],
  ]
  expect(readReadiness(host(fleet))).toMatchObject({ status: 'ready', healthy_workers: 2 })
})

test('draining is reported before any other reason', () => {
  expect(readReadiness(host([], { isDraining: true, reason: 'x' }))).toEqual({
    status: 'not ready',
    reason: 'draining',
  })
})

test('the reason of a plugin is reported if workers are registered', () => {
  const reason = 'tokenizer not yet registered'
  expect(readReadiness(host([['regular', 'ready']], { reason }))).toEqual({ status: 'not ready', reason })
})
