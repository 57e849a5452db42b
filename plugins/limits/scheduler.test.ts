/** The scheduler's decisions one by one. */
import { describe, expect, test } from 'vitest'
import { reservedSlots, Scheduler, type SchedulerRules } from './scheduler.ts'
import { Turn } from './turn.ts'

const [SYSTEM, INTERACTIVE, DEFAULT, BULK] = [0, 1, 2, 3]
const PLAIN = {
  floor: 0,
  share: 0,
  queueSize: 8,
  queueTimeoutMs: 60_000,
  starvationMs: 1e9,
  mayPreempt: false,
}

function rulesOf(
  capacity: number,
  ...changes: readonly Partial<SchedulerRules['classes'][number]>[]
): SchedulerRules {
  return { capacity, maxReservedShare: 1, classes: [0, 1, 2, 3].map((i) => ({ ...PLAIN, ...changes[i] })) }
}

function open(rules: SchedulerRules) {
  const events: string[] = []
  const scheduler = new Scheduler(rules, {
    onPreemption: (victim, by) => events.push(`${by} preempts ${victim}`),
    onStarvation: (priority) => events.push(`${priority} starved`),
  })
  const ask = (priority: number, nowMs = 0, hasSentByte = false) => {
    const turn: Turn = new Turn(priority, {
      isPreemptible: () => !hasSentByte,
      onAdmitted: () => events.push(`${priority} in`),
      onPreempted: () => scheduler.end(turn, nowMs),
      onTimedOut: () => events.push(`${priority} timed out`),
    })
    return { answer: scheduler.request(turn, nowMs), turn }
  }
  return { scheduler, ask, events }
}

describe('who runs', () => {
  test('higher classes go first, each in order of arrival', () => {
    const { scheduler, ask, events } = open(rulesOf(1))
    const running = ask(DEFAULT)
    for (const priority of [BULK, DEFAULT, INTERACTIVE, SYSTEM]) expect(ask(priority).answer).toBe('waiting')
    scheduler.end(running.turn, 1)
    expect(events).toEqual(['0 in'])
  })

  test('a full queue refuses', () => {
    const { ask } = open(rulesOf(1, {}, {}, {}, { queueSize: 1 }))
    ask(BULK)
    expect(ask(BULK).answer).toBe('waiting')
    expect(ask(BULK).answer).toBe('full')
  })

  test('kept slots wait for their class', () => {
    const { ask, scheduler } = open(rulesOf(4, { floor: 1 }, { share: 0.5 }))
    expect(scheduler.reservations).toEqual([1, 2, 0, 0])
    expect([ask(BULK), ask(BULK)].map(({ answer }) => answer)).toEqual(['admitted', 'waiting'])
    expect([ask(INTERACTIVE), ask(INTERACTIVE), ask(INTERACTIVE)].map(({ answer }) => answer)).toEqual([
      'admitted',
      'admitted',
      'waiting',
    ])
    expect(ask(SYSTEM).answer).toBe('admitted')
  })

  test('reservations together leave the rest of the slots to everybody', () => {
    const classes = rulesOf(0, { floor: 32 }, { floor: 128, share: 0.25 }, { share: 0.1 }).classes
    expect(reservedSlots({ capacity: 8, maxReservedShare: 0.5, classes })).toEqual([4, 0, 0, 0])
    expect(reservedSlots({ capacity: 1_000, maxReservedShare: 0.5, classes })).toEqual([32, 250, 100, 0])
  })

  test('a wait ends at its deadline', () => {
    const { ask, scheduler, events } = open(rulesOf(1))
    ask(BULK)
    ask(BULK, 10)
    scheduler.expire(60_009)
    expect(events).toEqual([])
    scheduler.expire(60_010)
    expect(events).toEqual(['3 timed out'])
    expect(scheduler.isAnyoneWaiting).toBe(false)
  })
})

describe('53: preemption', () => {
  const rules = rulesOf(2, {}, { mayPreempt: true })

  test('takes the newest of the lowest class', () => {
    const { ask, events } = open(rules)
    const [older, newer] = [ask(BULK), ask(BULK)]
    expect(ask(INTERACTIVE).answer).toBe('admitted')
    expect([older.turn.state, newer.turn.state]).toEqual(['running', 'over'])
    expect(events[0]).toBe('1 preempts 3')
  })

  test('spares who has sent a byte, equals, and classes above', () => {
    const { ask } = open(rules)
    ask(BULK, 0, true)
    ask(INTERACTIVE)
    expect(ask(INTERACTIVE).answer).toBe('waiting')
  })

  test('ends nobody where the slot would be kept for a higher class', () => {
    const { ask, events } = open(rulesOf(2, { floor: 2 }, { mayPreempt: true }, {}, { starvationMs: 10 }))
    ask(BULK)
    expect(ask(INTERACTIVE).answer).toBe('waiting')
    expect(events).toEqual([])
  })

  test('needs no place in a queue', () => {
    const { ask } = open(rulesOf(1, {}, { mayPreempt: true, queueSize: 0 }))
    ask(BULK)
    expect(ask(INTERACTIVE).answer).toBe('admitted')
    expect(ask(INTERACTIVE).answer).toBe('full')
  })
})

describe('54: waiting too long', () => {
  test('a bulk request goes first after 120 s, and is not preempted', () => {
    const rules = rulesOf(1, {}, { mayPreempt: true }, {}, { starvationMs: 120_000 })
    const { ask, scheduler, events } = open(rules)
    const running = ask(INTERACTIVE)
    const bulk = ask(BULK)
    ask(INTERACTIVE, 119_000)
    scheduler.end(running.turn, 120_000)
    expect(events).toEqual(['3 starved', '3 in'])
    expect(ask(INTERACTIVE, 120_001).answer).toBe('waiting')
    expect(bulk.turn.state).toBe('running')
  })

  test('it needs no other request to end when only reservations kept it out', () => {
    const { ask, scheduler } = open(rulesOf(1, { floor: 1 }, {}, {}, { starvationMs: 120_000 }))
    const bulk = ask(BULK)
    scheduler.dispatch(119_999)
    expect(bulk.turn.state).toBe('waiting')
    scheduler.dispatch(120_000)
    expect(bulk.turn.state).toBe('running')
  })
})

describe('a change of rules', () => {
  test('more slots let waiting requests in, fewer end nobody', () => {
    const { ask, scheduler } = open(rulesOf(1))
    ask(BULK)
    const second = ask(BULK)
    scheduler.setRules(rulesOf(2), 0)
    expect(second.turn.state).toBe('running')
    scheduler.setRules(rulesOf(1), 0)
    expect(scheduler.used).toBe(2)
    expect(ask(BULK).answer).toBe('waiting')
    scheduler.end(second.turn, 0)
    expect(scheduler.waiting(BULK)).toBe(1)
  })

  test('the end of scheduling lets everybody in', () => {
    const { ask, scheduler } = open(rulesOf(1))
    for (let i = 0; i < 4; i++) ask(i)
    scheduler.admitAll()
    expect(scheduler.used).toBe(4)
  })
})
