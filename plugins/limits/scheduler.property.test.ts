/** Random lives of a scheduler, against what must hold after every step. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type ClassRules, Scheduler, type SchedulerAnswer, type SchedulerRules } from './scheduler.ts'
import { Turn } from './turn.ts'

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
})

interface Guest {
  readonly turn: Turn
  hasSentByte: boolean
  isPreempted: boolean
  isTimedOut: boolean
}

class House {
  readonly scheduler: Scheduler
  readonly guests: Guest[] = []
  /** Waiting turns by class, in order of arrival. */
  readonly queues: Turn[][] = [[], [], [], []]
  preemptions = 0
  starvations = 0
  nowMs = 0

  constructor(given: SchedulerRules) {
    this.scheduler = new Scheduler(given, {
      onPreemption: (victim, by) => {
        this.preemptions++
        expect(victim).toBeGreaterThan(by)
      },
      onStarvation: () => {
        this.starvations++
      },
    })
  }

  of(state: Turn['state']): Guest[] {
    return this.guests.filter(({ turn }) => turn.state === state)
  }

  request(priority: number, endsAtOnce: boolean): SchedulerAnswer {
    const before = this.scheduler.available(priority)
    const hadQueue = this.scheduler.waiting(priority) > 0
    const guest: Guest = {
      hasSentByte: false,
      isPreempted: false,
      isTimedOut: false,
      turn: new Turn(priority, {
        isPreemptible: () => !guest.hasSentByte && !guest.isPreempted,
        onAdmitted: () => expect(this.queues[priority].shift()).toBe(guest.turn),
        onPreempted: () => {
          expect(guest.hasSentByte).toBe(false)
          guest.isPreempted = true
          if (endsAtOnce) this.end(guest.turn)
        },
        onTimedOut: () => {
          guest.isTimedOut = true
          expect(this.nowMs - guest.turn.sinceMs).toBeGreaterThanOrEqual(TIMEOUT_MS)
          this.queues[priority].splice(this.queues[priority].indexOf(guest.turn), 1)
        },
      }),
    }
    const waitsFirst = hadQueue || before <= 0
    if (waitsFirst) this.queues[priority].push(guest.turn)
    const answer = this.scheduler.request(guest.turn, this.nowMs)
    if (answer === 'full') {
      expect(waitsFirst).toBe(true)
      this.queues[priority].pop()
      return answer
    }
    // Nobody overtakes in a class, unless somebody below made room.
    if (answer === 'admitted' && waitsFirst) expect(this.preemptions).toBeGreaterThan(0)
    this.guests.push(guest)
    return answer
  }

  end(turn: Turn): void {
    const queue = this.queues[turn.priority]
    if (turn.state === 'waiting') queue.splice(queue.indexOf(turn), 1)
    this.scheduler.end(turn, this.nowMs)
  }

  check({ capacity, classes }: SchedulerRules): void {
    const { scheduler } = this
    const running = this.of('running').map(({ turn }) => turn)
    expect(scheduler.used).toBe(running.length)
    expect(scheduler.used).toBeLessThanOrEqual(capacity)
    classes.forEach((_, priority) => {
      expect(scheduler.usedBy(priority)).toBe(running.filter((turn) => turn.priority === priority).length)
      expect(scheduler.waiting(priority)).toBe(this.queues[priority].length)
      // A slot that a waiting class could take is never left empty.
      if (scheduler.waiting(priority) > 0) expect(scheduler.available(priority)).toBeLessThanOrEqual(0)
    })
  }
}

test('used slots never exceed the capacity, order is kept, nothing is lost, free slots are given away', () => {
  fc.assert(
    fc.property(rules, fc.array(step, { maxLength: 80 }), fc.boolean(), (given, steps, endsAtOnce) => {
      const house = new House(given)
      for (const { action, priority, at, afterMs } of steps) {
        house.nowMs += afterMs
        const pick = (guests: Guest[]) => guests[at % Math.max(1, guests.length)]
        if (action === 'request') house.request(priority, endsAtOnce)
        else if (action === 'end') pick(house.of('running')) && house.end(pick(house.of('running')).turn)
        else if (action === 'leave') pick(house.of('waiting')) && house.end(pick(house.of('waiting')).turn)
        else if (action === 'firstByte') {
          const guest = pick(house.of('running'))
          if (guest !== undefined) guest.hasSentByte = true
        } else {
          house.scheduler.expire(house.nowMs)
          house.scheduler.dispatch(house.nowMs)
        }
        house.check(given)
      }
      for (const { turn } of house.guests.filter(({ isPreempted }) => isPreempted)) house.end(turn)
      while (house.of('running').length > 0) {
        house.end(house.of('running')[0].turn)
        house.check(given)
      }
      // Who still waits may wait for reserved slots; time lets everybody in.
      house.nowMs += STARVATION_MS
      house.scheduler.dispatch(house.nowMs)
      while (house.of('running').length > 0) house.end(house.of('running')[0].turn)
      expect(house.of('waiting')).toEqual([])
      expect(house.scheduler.used).toBe(0)
    }),
    { numRuns: 500 },
  )
})

test('who is let in at once leaves free what is kept for the classes above', () => {
  fc.assert(
    fc.property(rules, fc.array(fc.nat({ max: 3 }), { maxLength: 40 }), (given, arrivals) => {
      const house = new House(given)
      for (const priority of arrivals) {
        const answer = house.request(priority, true)
        if (answer === 'admitted') expect(house.scheduler.available(priority)).toBeGreaterThanOrEqual(0)
      }
    }),
    { numRuns: 500 },
  )
})
