/** A thread may die between any two writes to shared memory: what it held is released, and never more than that. */
import { afterEach, expect, test, vi } from 'vitest'
import { SharedPermits } from './permits/shared-permits.ts'
import { RunningTable } from './running/running-table.ts'
import { SharedSlots } from './scheduler/shared-slots.ts'

const WRITES = ['add', 'sub', 'exchange', 'compareExchange', 'store'] as const
const BULK = 3

class Death extends Error {}

afterEach(() => vi.restoreAllMocks())

/** Runs the work of a thread that dies after that many writes. @returns false if it completed before */
function diesAfter(writes: number, work: () => void): boolean {
  let left = writes
  for (const name of WRITES) {
    const original = Atomics[name] as (...args: unknown[]) => unknown
    vi.spyOn(Atomics, name).mockImplementation(((...args: unknown[]) => {
      if (left-- === 0) throw new Death()
      return original(...args)
    }) as never)
  }
  try {
    work()
    return false
  } catch (error) {
    if (!(error instanceof Death)) throw error
    return true
  } finally {
    vi.restoreAllMocks()
  }
}

test('the gate: at most one permit and one queue place are lost, whichever write was the last', () => {
  for (let writes = 0, hasDied = true; hasDied; writes++) {
    const memory = new SharedArrayBuffer(SharedPermits.bytes(2))
    const open = (column: number) => new SharedPermits(memory, column, () => 1)
    const [other, dying] = [open(0), open(1)]
    expect(other.enter(2, 10)).toBe('entered')
    hasDied = diesAfter(writes, () => {
      dying.enter(2, 10)
      for (const _place of [1, 2]) {
        dying.enter(2, 10)
        dying.publishHead(dying.takeTicket())
      }
      dying.release()
      dying.takeNext(2)
      dying.publishHead(3)
      dying.leave()
      dying.publishHead(0)
      dying.release()
    })
    open(1).reset()
    const { inUse, waiting } = other.use
    expect([1, 2], `after ${writes} writes`).toContain(inUse)
    expect([0, 1], `after ${writes} writes`).toContain(waiting)
    other.release()
    expect(other.use.inUse).toBe(inUse - 1)
  }
})

test('the slots: at most one of each state is lost, whichever write was the last', () => {
  for (let writes = 0, hasDied = true; hasDied; writes++) {
    const memory = new SharedArrayBuffer(SharedSlots.bytes(2))
    const open = (column: number) => new SharedSlots(memory, column)
    const [other, dying] = [open(0), open(1)]
    other.take(BULK, () => true)
    hasDied = diesAfter(writes, () => {
      for (const priority of [0, BULK]) {
        dying.take(priority, () => true)
        dying.joinQueue(priority, 5)
        dying.leaveQueue(priority)
        dying.claimVictim(() => true)
        dying.victimEnded()
        dying.release(priority)
      }
    })
    open(1).reset()
    for (const count of other.waiting()) expect([0, 1], `after ${writes} writes`).toContain(count)
    const used = other.used()
    expect(used.slice(0, BULK).every((count) => count <= 1)).toBe(true)
    expect([1, 2], `after ${writes} writes`).toContain(used[BULK])
    expect([0, 1], `after ${writes} writes`).toContain(other.victims)
  }
})

test('running requests of tenants: at most one is lost, whichever write was the last', () => {
  for (let writes = 0, hasDied = true; hasDied; writes++) {
    const memory = new SharedArrayBuffer(RunningTable.bytes(16, 2))
    const open = (column: number) => new RunningTable(memory, 16, column)
    const [other, dying] = [open(0), open(1)]
    const held = other.enter('auth:a', 9)
    hasDied = diesAfter(writes, () => {
      dying.enter('auth:b', 9)
      const row = dying.enter('auth:a', 9)
      dying.enter('auth:a', 9)
      dying.release(row)
    })
    open(1).reset()
    expect([1, 2], `after ${writes} writes`).toContain(other.running('auth:a'))
    expect([0, 1], `after ${writes} writes`).toContain(other.running('auth:b'))
    const left = other.running('auth:a') - 1
    other.release(held)
    expect(other.running('auth:a')).toBe(left)
  }
})
