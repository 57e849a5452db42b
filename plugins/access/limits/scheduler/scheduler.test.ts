/** The scheduler's decisions one by one. */
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { Scheduler } from './scheduler.ts'
import { SchedulerEntry } from './scheduler-entry.ts'
import { reservedSlots, type SchedulerRules } from './scheduler-rules.ts'
import { SharedSlots } from './shared-slots.ts'

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

/** A scheduler on each thread; `ask` uses the first. */
function open(rules: SchedulerRules, threads = 1) {
  const events: string[] = []
  const memory = new SharedArrayBuffer(SharedSlots.bytes(threads))
  const slots = Array.from({ length: threads }, (_, column) => new SharedSlots(memory, column))
  const schedulers = slots.map(
    (one) =>
      new Scheduler(rules, one, {
        onPreemption: (victim, by) => events.push(`${by} preempts ${victim}`),
        onStarvation: (priority) => events.push(`${priority} starved`),
      }),
  )
  const askOn = (thread: number, priority: number, nowMs = 0, hasSentByte = false) => {
    const scheduler = schedulers[thread]
    const entry: SchedulerEntry = new SchedulerEntry(priority, {
      isPreemptible: () => !hasSentByte,
      onAdmitted: () => events.push(`${priority} in`),
      onPreempted: () => scheduler.end(entry, nowMs),
      onTimedOut: () => events.push(`${priority} timed out`),
    })
    return { answer: scheduler.request(entry, nowMs), entry }
  }
  const ask = (priority: number, nowMs = 0, hasSentByte = false) => askOn(0, priority, nowMs, hasSentByte)
  const used = () => slots[0].used().reduce((sum, count) => sum + count, 0)
  return { scheduler: schedulers[0], schedulers, slots, ask, askOn, events, used }
}

describe('admission', () => {
  test('higher classes go first, each in order of arrival', () => {
    const { scheduler, ask, events } = open(rulesOf(1))
    const running = ask(DEFAULT)
    for (const priority of [BULK, DEFAULT, INTERACTIVE, SYSTEM]) expect(ask(priority).answer).toBe('waiting')
    scheduler.end(running.entry, 1)
    expect(events).toEqual(['0 in'])
  })

  test('a full queue rejects', () => {
    const { ask } = open(rulesOf(1, {}, {}, {}, { queueSize: 1 }))
    ask(BULK)
    expect(ask(BULK).answer).toBe('waiting')
    expect(ask(BULK).answer).toBe('full')
  })

  test('reserved slots wait for their class', () => {
    const rules = rulesOf(4, { floor: 1 }, { share: 0.5 })
    expect(reservedSlots(rules)).toEqual([1, 2, 0, 0])
    const { ask } = open(rules)
    expect([ask(BULK), ask(BULK)].map(({ answer }) => answer)).toEqual(['admitted', 'waiting'])
    expect([ask(INTERACTIVE), ask(INTERACTIVE), ask(INTERACTIVE)].map(({ answer }) => answer)).toEqual([
      'admitted',
      'admitted',
      'waiting',
    ])
    expect(ask(SYSTEM).answer).toBe('admitted')
  })

  test('reservations together leave the rest of the slots to all classes', () => {
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
    expect(scheduler.hasWaiters).toBe(false)
  })
})

describe('preemption', () => {
  const rules = rulesOf(2, {}, { mayPreempt: true })

  test('takes the newest of the lowest class', () => {
    const { ask, events } = open(rules)
    const [older, newer] = [ask(BULK), ask(BULK)]
    expect(ask(INTERACTIVE).answer).toBe('admitted')
    expect([older.entry.state, newer.entry.state]).toEqual(['running', 'over'])
    expect(events[0]).toBe('1 preempts 3')
  })

  test('spares requests that have sent a byte, equal classes, and higher ones', () => {
    const { ask } = open(rules)
    ask(BULK, 0, true)
    ask(INTERACTIVE)
    expect(ask(INTERACTIVE).answer).toBe('waiting')
  })

  test('does not happen if the slot would be reserved for a higher class', () => {
    const { ask, events } = open(rulesOf(2, { floor: 2 }, { mayPreempt: true }, {}, { starvationMs: 10 }))
    ask(BULK)
    expect(ask(INTERACTIVE).answer).toBe('waiting')
    expect(events).toEqual([])
  })

  test('needs no queue place', () => {
    const { ask } = open(rulesOf(1, {}, { mayPreempt: true, queueSize: 0 }))
    ask(BULK)
    expect(ask(INTERACTIVE).answer).toBe('admitted')
    expect(ask(INTERACTIVE).answer).toBe('full')
  })
})

describe('starvation', () => {
  test('a bulk request goes first after 120 s, and is not preempted', () => {
    const rules = rulesOf(1, {}, { mayPreempt: true }, {}, { starvationMs: 120_000 })
    const { ask, scheduler, events } = open(rules)
    const running = ask(INTERACTIVE)
    const bulk = ask(BULK)
    ask(INTERACTIVE, 119_000)
    scheduler.end(running.entry, 120_000)
    expect(events).toEqual(['3 starved', '3 in'])
    expect(ask(INTERACTIVE, 120_001).answer).toBe('waiting')
    expect(bulk.entry.state).toBe('running')
  })

  test('it needs no other request to end if only reservations blocked it', () => {
    const { ask, scheduler } = open(rulesOf(1, { floor: 1 }, {}, {}, { starvationMs: 120_000 }))
    const bulk = ask(BULK)
    scheduler.dispatch(119_999)
    expect(bulk.entry.state).toBe('waiting')
    scheduler.dispatch(120_000)
    expect(bulk.entry.state).toBe('running')
  })
})

describe('a change of rules', () => {
  test('more slots admit waiting requests, fewer end none', () => {
    const { ask, scheduler, slots, used } = open(rulesOf(1))
    ask(BULK)
    const second = ask(BULK)
    scheduler.setRules(rulesOf(2), 0)
    expect(second.entry.state).toBe('running')
    scheduler.setRules(rulesOf(1), 0)
    expect(used()).toBe(2)
    expect(ask(BULK).answer).toBe('waiting')
    scheduler.end(second.entry, 0)
    expect(slots[0].waiting()[BULK]).toBe(1)
  })

  test('disabling the scheduler admits all requests', () => {
    const { ask, scheduler, used } = open(rulesOf(1))
    for (let i = 0; i < 4; i++) ask(i)
    scheduler.admitAll()
    expect(used()).toBe(4)
  })
})

describe('several threads', () => {
  test('share the slots, and each admits its own entries', () => {
    const { askOn, schedulers, events } = open(rulesOf(1), 2)
    const running = askOn(0, DEFAULT)
    expect([askOn(1, BULK), askOn(1, DEFAULT), askOn(0, DEFAULT)].map(({ answer }) => answer)).toEqual([
      'waiting',
      'waiting',
      'waiting',
    ])
    schedulers[0].end(running.entry, 1)
    expect(events).toEqual([])
    // A free slot is reserved for the other thread.
    expect([askOn(0, DEFAULT, 1), askOn(0, BULK, 1)].map(({ answer }) => answer)).toEqual([
      'waiting',
      'waiting',
    ])
    schedulers[1].onWake(1)
    expect(events).toEqual(['2 in'])
  })

  test('preempt one request on another thread that has one, and not a second one for it', () => {
    const rules = rulesOf(2, {}, { mayPreempt: true })
    const { askOn, schedulers, events } = open(rules, 3)
    askOn(1, BULK, 0, true)
    const victim = askOn(2, BULK)
    expect(askOn(0, INTERACTIVE).answer).toBe('waiting')
    for (const thread of [1, 2, 1, 2]) schedulers[thread].onWake(1)
    expect(victim.entry.state).toBe('over')
    schedulers[0].onWake(1)
    expect(events).toEqual(['1 preempts 3', '1 in'])
  })

  test('a request that left meanwhile causes no preemption', () => {
    const { askOn, schedulers, events } = open(rulesOf(1, {}, { mayPreempt: true }), 2)
    askOn(1, BULK)
    const asker = askOn(0, INTERACTIVE)
    schedulers[0].end(asker.entry, 1)
    schedulers[1].onWake(1)
    expect(events).toEqual([])
  })

  test('the queue size applies to all threads together', () => {
    const { askOn } = open(rulesOf(1, {}, {}, {}, { queueSize: 1 }), 2)
    askOn(0, BULK)
    expect([askOn(0, BULK), askOn(1, BULK)].map(({ answer }) => answer)).toEqual(['waiting', 'full'])
  })

  test('slots of a dead thread are released, and its entries skipped until then', () => {
    const { askOn, schedulers, slots, events } = open(rulesOf(1), 2)
    const running = askOn(0, BULK)
    askOn(1, BULK)
    askOn(0, BULK, 1)
    schedulers[0].end(running.entry, 1)
    expect(events).toEqual([])
    schedulers[0].dispatch(2_002)
    expect(events).toEqual(['3 in'])
    slots[1].reset()
    expect([slots[0].used()[BULK], slots[0].waiting()[BULK]]).toEqual([1, 0])
  })
})

test('real threads never use more slots than the capacity, and every request is admitted', async () => {
  const threads = 3
  const memory = new SharedArrayBuffer(SharedSlots.bytes(threads))
  const seen = new SharedArrayBuffer(12)
  const generous = { queueSize: 10_000, starvationMs: 5 }
  const interactive = { ...generous, floor: 1, mayPreempt: true }
  const rules = rulesOf(3, generous, interactive, generous, generous)
  const ends = Array.from({ length: threads }, (_, column) => {
    const worker = new Worker(
      new URL('../../../../test/fixtures/threads/scheduler-thread.ts', import.meta.url),
      {
        workerData: { memory, seen, column, requests: 400, rules },
        execArgv: ['--conditions=weir-source'],
      },
    )
    return new Promise<number>((resolve, reject) => {
      worker.on('message', resolve)
      worker.on('error', reject)
    })
  })
  expect(await Promise.all(ends)).toEqual([400, 400, 400])
  const slots = new SharedSlots(memory, 0)
  expect([slots.used(), slots.waiting()]).toEqual([
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ])
  // Maximum of concurrent slots, as counted by the holders.
  expect(new Int32Array(seen)[1]).toBe(3)
}, 180_000)
