/** Random histories of schedulers on one and several threads, with invariants checked after every step. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type RequestResult, Scheduler } from './scheduler.ts'
import { SchedulerEntry } from './scheduler-entry.ts'
import type { ClassRules, SchedulerRules } from './scheduler-rules.ts'
import { SharedSlots } from './shared-slots.ts'

const STARVATION_MS = 50
const TIMEOUT_MS = 500

const classRules: fc.Arbitrary<ClassRules> = fc.record({
  floor: fc.nat({ max: 3 }),
  share: fc.constantFrom(0, 0.1, 0.5),
  queueSize: fc.nat({ max: 4 }),
  queueTimeoutMs: fc.constant(TIMEOUT_MS),
  starvationMs: fc.constant(STARVATION_MS),
  mayPreempt: fc.boolean(),
})

const rules: fc.Arbitrary<SchedulerRules> = fc.record({
  capacity: fc.integer({ min: 1, max: 6 }),
  maxReservedShare: fc.constantFrom(0, 0.5, 1),
  classes: fc.array(classRules, { minLength: 4, maxLength: 4 }),
})

const step = fc.record({
  action: fc.constantFrom('request', 'request', 'request', 'end', 'end', 'firstByte', 'leave', 'tick'),
  priority: fc.nat({ max: 3 }),
  at: fc.nat({ max: 20 }),
  afterMs: fc.nat({ max: 30 }),
  thread: fc.nat({ max: 2 }),
})

type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

interface Guest {
  readonly entry: SchedulerEntry
  readonly scheduler: Scheduler
  hasSentByte: boolean
  isPreempted: boolean
  isTimedOut: boolean
}

class House {
  readonly slots: readonly SharedSlots[]
  readonly schedulers: readonly Scheduler[]
  readonly guests: Guest[] = []
  /** Waiting entries by class, in order of arrival. */
  readonly queues: SchedulerEntry[][] = [[], [], [], []]
  preemptions = 0
  /** Requests that may have caused a preemption. */
  askers = 0
  nowMs = 0

  constructor(given: SchedulerRules, threads = 1) {
    const memory = new SharedArrayBuffer(SharedSlots.bytes(threads))
    this.slots = Array.from({ length: threads }, (_, column) => new SharedSlots(memory, column))
    this.schedulers = this.slots.map(
      (slots) =>
        new Scheduler(given, slots, {
          onPreemption: (victim, by) => {
            this.preemptions++
            expect(victim).toBeGreaterThan(by)
          },
          onStarvation: () => {},
        }),
    )
  }

  /** Wakes all threads until nothing changes. */
  settle(): void {
    for (let before = -1, now = this.moves; now !== before; now = this.moves) {
      before = now
      for (const scheduler of this.schedulers) scheduler.onWake(this.nowMs)
      for (const scheduler of this.schedulers.toReversed()) scheduler.onWake(this.nowMs)
    }
  }

  get moves(): number {
    return this.of('running').length * 1_000_000 + this.of('over').length
  }

  of(state: SchedulerEntry['state']): Guest[] {
    return this.guests.filter(({ entry }) => entry.state === state)
  }

  request(priority: number, endsAtOnce: boolean, thread = 0): RequestResult {
    const scheduler = this.schedulers[thread % this.schedulers.length]
    const before = scheduler.available(priority)
    this.askers++
    const hadQueue = this.queues.slice(0, priority + 1).some((queue) => queue.length > 0)
    const guest: Guest = {
      scheduler,
      hasSentByte: false,
      isPreempted: false,
      isTimedOut: false,
      entry: new SchedulerEntry(priority, {
        isPreemptible: () => !guest.hasSentByte && !guest.isPreempted,
        onAdmitted: () => expect(this.queues[priority].shift()).toBe(guest.entry),
        onPreempted: () => {
          expect(guest.hasSentByte).toBe(false)
          guest.isPreempted = true
          if (endsAtOnce) this.end(guest)
        },
        onTimedOut: () => {
          guest.isTimedOut = true
          expect(this.nowMs - guest.entry.sinceMs).toBeGreaterThanOrEqual(TIMEOUT_MS)
          this.queues[priority].splice(this.queues[priority].indexOf(guest.entry), 1)
        },
      }),
    }
    const waitsFirst = hadQueue || before <= 0
    if (waitsFirst) this.queues[priority].push(guest.entry)
    const answer = scheduler.request(guest.entry, this.nowMs)
    if (answer === 'full') {
      expect(waitsFirst).toBe(true)
      this.queues[priority].pop()
      return answer
    }
    // A request is admitted before queued ones of its class only after a preemption below.
    if (answer === 'admitted' && waitsFirst) expect(this.preemptions).toBeGreaterThan(0)
    this.guests.push(guest)
    return answer
  }

  end({ entry, scheduler }: Guest): void {
    const queue = this.queues[entry.priority]
    if (entry.state === 'waiting') queue.splice(queue.indexOf(entry), 1)
    scheduler.end(entry, this.nowMs)
  }

  check({ capacity, classes }: SchedulerRules): void {
    const [slots] = this.slots
    const running = this.of('running').map(({ entry }) => entry)
    expect(running.length).toBeLessThanOrEqual(capacity)
    // No request is preempted twice, nor two for one.
    expect(this.preemptions).toBeLessThanOrEqual(this.askers)
    classes.forEach((_, priority) => {
      expect(slots.used()[priority]).toBe(running.filter((entry) => entry.priority === priority).length)
      expect(slots.waiting()[priority]).toBe(this.queues[priority].length)
      // A slot that a waiting class could use is never left free.
      if (this.queues[priority].length > 0)
        expect(this.schedulers[0].available(priority)).toBeLessThanOrEqual(0)
    })
  }

  step({ action, priority, at, afterMs, thread }: Step, endsAtOnce: boolean): void {
    this.nowMs += afterMs
    const pick = (guests: Guest[]): Guest | undefined => guests[at % Math.max(1, guests.length)]
    const running = pick(this.of('running'))
    const waiting = pick(this.of('waiting'))
    if (action === 'request') this.request(priority, endsAtOnce, thread)
    else if (action === 'end' && running) this.end(running)
    else if (action === 'leave' && waiting) this.end(waiting)
    else if (action === 'firstByte' && running) running.hasSentByte = true
    else for (const scheduler of this.schedulers) scheduler.expire(this.nowMs)
    this.settle()
  }

  /** Remaining requests may wait for reserved slots; starvation admits all of them. */
  finish(): void {
    for (const guest of this.guests.filter(({ isPreempted }) => isPreempted)) this.end(guest)
    this.settle()
    this.nowMs += STARVATION_MS
    while (this.of('running').length + this.of('waiting').length > 0) {
      this.settle()
      const [next] = this.of('running')
      expect(next).toBeDefined()
      this.end(next)
    }
  }
}

test.each([1, 3])(
  'over %i threads used slots never exceed the capacity, order is kept, nothing is lost, free slots are given away',
  (threads) => {
    fc.assert(
      fc.property(rules, fc.array(step, { maxLength: 80 }), fc.boolean(), (given, steps, endsAtOnce) => {
        const house = new House(given, threads)
        for (const one of steps) {
          house.step(one, endsAtOnce)
          house.check(given)
        }
        house.finish()
        expect(house.slots[0].used()).toEqual([0, 0, 0, 0])
        expect(house.slots[0].waiting()).toEqual([0, 0, 0, 0])
        expect(house.slots[0].victims).toBe(0)
      }),
      { numRuns: 300 },
    )
  },
)

test('a request admitted at once leaves the slots reserved for higher classes free', () => {
  fc.assert(
    fc.property(rules, fc.array(fc.nat({ max: 3 }), { maxLength: 40 }), (given, arrivals) => {
      const house = new House(given)
      for (const priority of arrivals) {
        const answer = house.request(priority, true)
        if (answer === 'admitted') expect(house.schedulers[0].available(priority)).toBeGreaterThanOrEqual(0)
      }
    }),
    { numRuns: 500 },
  )
})
