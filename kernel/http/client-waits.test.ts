import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { GatewayError } from '../errors/gateway-error.ts'
import { ClientWaits, type WaitingRequest } from './client-waits.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const LIMITS = { bodyIdleMs: 60_000, bodyMinRate: 1_024, replyIdleMs: 120_000 }

function request(parts: Partial<WaitingRequest>) {
  const events: string[] = []
  const fake = {
    isDone: false,
    isFailing: false,
    isReceiving: false,
    isUntaken: false,
    isStreaming: false,
    bytesIn: 0,
    takings: 0,
    closesConnection: false,
    errorCode: null as string | null,
    keepOpen: () => void events.push('kept'),
    fail: (error: unknown) => {
      events.push((error as GatewayError).code)
      fake.isDone = true
    },
    destroy: () => {
      events.push('cut')
      fake.isDone = true
    },
    ...parts,
  }
  return { fake: fake as { -readonly [Key in keyof WaitingRequest]: WaitingRequest[Key] }, events }
}

function watch(...requests: WaitingRequest[]): ClientWaits {
  return new ClientWaits(LIMITS, () => requests)
}

test('a request that waits for nobody is left alone', () => {
  const { fake, events } = request({})
  watch(fake)
  vi.advanceTimersByTime(300_000)
  expect(events).toEqual([])
})

test('a stream on which nothing is written stays open', () => {
  const { fake, events } = request({ isStreaming: true })
  watch(fake)
  vi.advanceTimersByTime(300_000)
  expect(events).toEqual(Array(100).fill('kept'))
})

test('a body may pause for less than its limit; after it the client is told so and the connection closed', () => {
  const { fake, events } = request({ isReceiving: true, bytesIn: 1_000_000 })
  watch(fake)
  vi.advanceTimersByTime(57_000)
  expect(new Set(events)).toEqual(new Set(['kept']))
  fake.bytesIn++
  vi.advanceTimersByTime(60_000)
  expect(events).not.toContain('body_timeout')
  vi.advanceTimersByTime(6_000)
  expect(events.at(-1)).toBe('body_timeout')
  expect(fake.closesConnection).toBe(true)
})

test('a body that drips is given up when it stays below the least rate', () => {
  const drip = request({ isReceiving: true })
  const steady = request({ isReceiving: true })
  watch(drip.fake, steady.fake)
  for (let i = 0; i < 30; i++) {
    drip.fake.bytesIn += 100
    steady.fake.bytesIn += 6_000
    vi.advanceTimersByTime(3_000)
  }
  expect(drip.events.at(-1)).toBe('body_timeout')
  expect(steady.events.at(-1)).toBe('kept')
})

test('a reply that is not taken is cut after its limit, and its log line says why', () => {
  const { fake, events } = request({ isUntaken: true })
  watch(fake)
  vi.advanceTimersByTime(90_000)
  fake.takings++
  vi.advanceTimersByTime(117_000)
  expect(events).not.toContain('cut')
  vi.advanceTimersByTime(9_000)
  expect(events.at(-1)).toBe('cut')
  expect(fake.errorCode).toBe('reply_timeout')
})
