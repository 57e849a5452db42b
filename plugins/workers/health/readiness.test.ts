import { expect, test } from 'vitest'
import { NO_PENDING_WORKERS, type Outage, type WorkerStatus, type WorkerType } from '#kernel'
import { type ReadinessHost, readReadiness } from './readiness.ts'

type Fleet = [WorkerType, WorkerStatus][]

interface Rest {
  readonly isDraining?: boolean
  readonly reason?: string
  readonly breakers?: string[]
  readonly missing?: string[]
  readonly outages?: Outage[]
  readonly pending?: number
}

function readinessOf(fleet: Fleet, rest: Rest = {}) {
  const host = {
    isDraining: rest.isDraining ?? false,
    readinessReason: () => rest.reason ?? null,
    balance: {
      workers: fleet.map(([workerType], slot) => ({ slot, workerType })),
      status: (slot: number) => fleet[slot][1],
      breakerState: (slot: number) => rest.breakers?.[slot] ?? 'closed',
    },
    missingAtStartup: () => rest.missing ?? [],
    outages: () => rest.outages ?? [],
  } as unknown as ReadinessHost
  return readReadiness(host, { ...NO_PENDING_WORKERS, count: rest.pending ?? 0, configured: 3 })
}

const configured = { configured_workers: 3, pending_workers: 0 }
const tooFew = { status: 'not ready', reason: 'insufficient healthy workers' }

test('ready with the counts if one worker is ready', () => {
  const fleet: Fleet = [
    ['regular', 'ready'],
    ['regular', 'not_ready'],
    ['regular', 'ready'],
  ]
  expect(readinessOf(fleet)).toEqual({ status: 'ready', healthy_workers: 2, total_workers: 3, ...configured })
})

test('reports the number of ready workers with an open breaker', () => {
  const fleet: Fleet = [
    ['regular', 'ready'],
    ['regular', 'ready'],
    ['regular', 'failed'],
  ]
  const breakers = ['closed', 'half_open', 'open']
  expect(readinessOf(fleet, { breakers })).toEqual({
    status: 'ready',
    healthy_workers: 2,
    total_workers: 3,
    ...configured,
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
  expect(readinessOf(fleet)).toMatchObject(tooFew)
})

test('one ready worker per role is enough for prefill and decode', () => {
  const fleet: Fleet = [
    ['prefill', 'ready'],
    ['decode', 'ready'],
  ]
  expect(readinessOf(fleet)).toMatchObject({ status: 'ready', healthy_workers: 2 })
})

test('draining is reported before any other reason', () => {
  expect(readinessOf([], { isDraining: true, reason: 'x' })).toMatchObject({
    status: 'not ready',
    reason: 'draining',
  })
})

test('the reason of a plugin is reported if workers are registered', () => {
  const reason = 'tokenizer not yet registered'
  expect(readinessOf([['regular', 'ready']], { reason })).toMatchObject({
    status: 'not ready',
    reason,
    healthy_workers: 1,
  })
})

test('outages and what is missing are reported, and do not count', () => {
  const outages = [{ service: 'shared-store', problem: 'the database is unreachable' }]
  const missing = ['1 of 3 configured workers not yet registered']
  expect(readinessOf([['regular', 'ready']], { outages, missing, pending: 1 })).toEqual({
    status: 'ready',
    healthy_workers: 1,
    total_workers: 1,
    configured_workers: 3,
    pending_workers: 1,
    degraded: outages,
    missing,
  })
  expect(readinessOf([], { outages })).toMatchObject({ status: 'not ready', degraded: outages })
})
