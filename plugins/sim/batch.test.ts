import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { defineValidator } from '#kernel'
import { VirtualClock } from '../../test/support/virtual-clock.ts'
import { Batch, type BatchHandle } from './batch.ts'
import { type EngineConfig, simConfig } from './config.ts'
import type { BatchJob } from './sequence.ts'

/** 1,000 prompt tokens a second, decode steps of 10 ms plus 1 ms a request, unless a test wants others. */
function open(fields: Partial<EngineConfig> = {}) {
  const engine = {
    model: 'batched',
    prefillTokensPerSecond: 1000,
    prefillChunkTokens: 64,
    decodeBaseMs: 10,
    decodePerRunningMs: 1,
    ...fields,
  }
  const config = defineValidator(simConfig).parse({ engine }).engine
  const clock = new VirtualClock()
  return { batch: new Batch(config, clock), clock, config }
}

interface Trace {
  readonly tokensAtMs: number[]
  admittedAtMs: number | null
  cachedTokens: number
  endedAtMs: number | null
}

/** Blocks of 16 tokens named after a prefix, so that equal prefixes are found again. */
function job(promptTokens: number, steps: number, prefix = Math.random()): BatchJob {
  const blocks = Array.from({ length: Math.floor(promptTokens / 16) }, (_, index) => prefix * 1000 + index)
  return { promptTokens, blocks, outputTokens: steps, steps }
}

function submit(batch: Batch, clock: VirtualClock, wanted: BatchJob): Trace & BatchHandle {
  const trace: Trace = { tokensAtMs: [], admittedAtMs: null, cachedTokens: 0, endedAtMs: null }
  const ticket = batch.submit(wanted, {
    onAdmit: (cachedTokens) => Object.assign(trace, { admittedAtMs: clock.now, cachedTokens }),
    onToken: (index) => {
      expect(index).toBe(trace.tokensAtMs.length)
      trace.tokensAtMs.push(clock.now)
    },
    onEnd: () => Object.assign(trace, { endedAtMs: clock.now }),
  })
  return Object.assign(trace, ticket)
}

describe('the time that an answer takes', () => {
  test('alone: prompt at the prefill rate, then one decode step per token', () => {
    const { batch, clock } = open()
    const answer = submit(batch, clock, job(50, 3))
    clock.passTo(1000)
    expect(answer.tokensAtMs).toEqual([50, 61, 72])
    expect(answer.endedAtMs).toBe(72)
  })

  test('each request of the batch makes a decode step longer for all', () => {
    const { batch, clock } = open({ decodePerRunningMs: 5, prefillTokensPerSecond: 1_000_000 })
    const answers = Array.from({ length: 4 }, () => submit(batch, clock, job(10, 5)))
    clock.passTo(1000)
    const { tokensAtMs } = answers[1]
    const gaps = [tokensAtMs[2] - tokensAtMs[1], tokensAtMs[3] - tokensAtMs[2]]
    for (const gap of gaps) expect(gap).toBeCloseTo(30, 0)
  })

  test('a long prompt comes in chunks, and running answers get a token between two of them', () => {
    const { batch, clock } = open()
    const early = submit(batch, clock, job(10, 20))
    clock.passTo(11)
    const long = submit(batch, clock, job(640, 2))
    clock.passTo(2000)
    expect(long.tokensAtMs).toHaveLength(2)
    const meanwhile = early.tokensAtMs.filter((atMs) => atMs < long.tokensAtMs[0])
    expect(meanwhile.length).toBeGreaterThanOrEqual(9)
  })

  test('a late timer changes when tokens leave, not how many there are by then', () => {
    const { batch, clock } = open()
    const answer = submit(batch, clock, job(50, 11))
    clock.now = 500
    clock.passTo(500)
    expect(answer.tokensAtMs).toEqual(Array(11).fill(500))
  })

  test('a prompt without an answer, as for vectors, ends when it is computed', () => {
    const { batch, clock } = open()
    const answer = submit(batch, clock, job(40, 0))
    clock.passTo(39)
    expect(answer.endedAtMs).toBeNull()
    clock.passTo(40)
    expect(answer).toMatchObject({ endedAtMs: 40, tokensAtMs: [] })
  })
})

describe('the prefix cache', () => {
  test('a prompt seen before costs only what is not in full blocks, and at least one token', () => {
    const { batch, clock } = open()
    submit(batch, clock, job(64, 1, 1))
    clock.passTo(100)
    const again = submit(batch, clock, job(64, 1, 1))
    clock.passTo(200)
    expect(again).toMatchObject({ cachedTokens: 48, tokensAtMs: [116] })
    expect(batch.load().hitRate).toBeCloseTo(48 / 128)
  })

  test('a prompt still being computed is shared as far as it is done', () => {
    const { batch, clock } = open({ prefillChunkTokens: 32 })
    submit(batch, clock, job(100, 1, 1))
    clock.passTo(40)
    const second = submit(batch, clock, job(100, 1, 1))
    clock.passTo(1000)
    expect(second).toMatchObject({ cachedTokens: 64 })
  })

  test('a waiting request tells how many of its prompt tokens are not cached', () => {
    const { batch, clock } = open({ maxRunning: 1 })
    submit(batch, clock, job(64, 1, 1))
    clock.passTo(100)
    submit(batch, clock, job(10, 50))
    submit(batch, clock, job(64, 1, 1))
    expect(batch.load()).toMatchObject({ running: 1, waiting: 1, waitingUncachedTokens: 16 })
  })
})

describe('limits', () => {
  test('requests beyond the batch wait, in the order they came', () => {
    const { batch, clock } = open({ maxRunning: 2 })
    const answers = Array.from({ length: 4 }, () => submit(batch, clock, job(10, 5)))
    clock.passTo(1)
    expect(batch.load()).toMatchObject({ running: 1, waiting: 3 })
    clock.passTo(15)
    expect(batch.load()).toMatchObject({ running: 2, waiting: 2 })
    clock.passTo(5000)
    const admitted = answers.map(({ admittedAtMs }) => admittedAtMs ?? Number.NaN)
    expect(admitted).toEqual(admitted.toSorted((left, right) => left - right))
    expect(answers.every(({ endedAtMs }) => endedAtMs !== null)).toBe(true)
  })

  test('a request that would not fit beside the others waits until they are done', () => {
    const { batch, clock } = open({ kvTokens: 160 })
    const first = submit(batch, clock, job(100, 10))
    const second = submit(batch, clock, job(100, 10))
    clock.passTo(150)
    expect(batch.load()).toMatchObject({ running: 1, waiting: 1 })
    clock.passTo(5000)
    expect(second.admittedAtMs).toBeGreaterThanOrEqual(first.endedAtMs ?? Number.NaN)
    expect(second.endedAtMs).not.toBeNull()
  })

  test('what could never fit, and what comes to a full queue, is refused', () => {
    const { batch, clock } = open({ kvTokens: 160, maxRunning: 1, maxWaiting: 1 })
    expect(() => submit(batch, clock, job(150, 20))).toThrow('need 170 tokens, but the cache holds 160')
    submit(batch, clock, job(10, 5))
    submit(batch, clock, job(10, 5))
    expect(() => submit(batch, clock, job(10, 5))).toThrow('1 requests waiting')
  })

  test('who leaves the queue or the batch is told nothing more and holds nothing', () => {
    const { batch, clock } = open({ maxRunning: 1 })
    const running = submit(batch, clock, job(10, 50))
    const waiting = submit(batch, clock, job(10, 5))
    clock.passTo(40)
    const tokens = running.tokensAtMs.length
    running.cancel()
    waiting.cancel()
    waiting.cancel()
    expect(batch.load()).toMatchObject({ running: 0, waiting: 0, usedTokens: 0 })
    clock.passTo(5000)
    expect(running).toMatchObject({ endedAtMs: null })
    expect(running.tokensAtMs).toHaveLength(tokens)
    expect(waiting.admittedAtMs).toBeNull()
    expect(clock.timers).toBe(0)
  })
})

const arrival = fc.record({
  gapMs: fc.integer({ min: 0, max: 60 }),
  promptTokens: fc.integer({ min: 0, max: 120 }),
  steps: fc.integer({ min: 0, max: 12 }),
  prefix: fc.integer({ min: 0, max: 3 }),
  /** Milliseconds after which the client leaves; null: it stays. */
  leavesMs: fc.option(fc.integer({ min: 0, max: 300 })),
})
type Arrival = typeof arrival extends fc.Arbitrary<infer T> ? T : never

function play(arrivals: readonly Arrival[]) {
  const { batch, clock, config } = open({ maxRunning: 3, kvTokens: 256, prefillChunkTokens: 48 })
  const left: { atMs: number; trace: Trace & BatchHandle }[] = []
  const check = () => {
    const { running, usedTokens, cachedTokens } = batch.load()
    expect(running).toBeLessThanOrEqual(config.maxRunning)
    expect(usedTokens + cachedTokens).toBeLessThanOrEqual(config.kvTokens)
    expect(clock.timers).toBeLessThanOrEqual(1)
  }
  const passTo = (atMs: number) => {
    for (const leaving of left.toSorted((one, other) => one.atMs - other.atMs)) {
      if (leaving.atMs < clock.now || leaving.atMs > atMs) continue
      clock.passTo(leaving.atMs)
      leaving.trace.cancel()
      check()
    }
    clock.passTo(atMs)
    check()
  }
  const traces = arrivals.map(({ gapMs, promptTokens, steps, prefix, leavesMs }) => {
    passTo(clock.now + gapMs)
    const trace = submit(batch, clock, job(promptTokens, steps, prefix))
    if (leavesMs !== null) left.push({ atMs: clock.now + leavesMs, trace })
    check()
    return trace
  })
  passTo(clock.now + 60_000)
  return { batch, clock, traces }
}

describe('whatever comes', () => {
  test('limits hold, every request ends or was left, and nothing is held in the end', () => {
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 30 }), (arrivals) => {
        const { batch, clock, traces } = play(arrivals)
        for (const [index, { endedAtMs, tokensAtMs }] of traces.entries()) {
          if (endedAtMs !== null) expect(tokensAtMs).toHaveLength(arrivals[index].steps)
          else expect(arrivals[index].leavesMs).not.toBeNull()
        }
        expect(batch.load()).toMatchObject({ running: 0, waiting: 0, usedTokens: 0 })
        expect(clock.timers).toBe(0)
      }),
    )
  })

  test('the hit rate is what admitted requests were told, over their prompts', () => {
    fc.assert(
      fc.property(fc.array(arrival, { minLength: 1, maxLength: 20 }), (arrivals) => {
        const { batch, traces } = play(arrivals)
        let told = 0
        let asked = 0
        for (const [index, { admittedAtMs, cachedTokens }] of traces.entries()) {
          if (admittedAtMs === null) continue
          told += cachedTokens
          asked += arrivals[index].promptTokens
          expect(cachedTokens).toBeLessThanOrEqual(Math.max(0, arrivals[index].promptTokens - 1))
        }
        expect(batch.load().hitRate).toBeCloseTo(asked === 0 ? 0 : told / asked)
      }),
    )
  })

  test('the same arrivals give the same times', () => {
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 20 }), (arrivals) => {
        const times = () => play(arrivals).traces.map(({ tokensAtMs, endedAtMs }) => [tokensAtMs, endedAtMs])
        expect(times()).toEqual(times())
      }),
    )
  })
})

test('with the real clock and fake timers it keeps its times too', () => {
  vi.useFakeTimers()
  try {
    const { config } = open()
    const batch = new Batch(config)
    const tokens: number[] = []
    const start = performance.now()
    const onToken = () => tokens.push(Math.round(performance.now() - start))
    batch.submit(job(50, 3), { onAdmit: () => {}, onToken, onEnd: () => {} })
    vi.advanceTimersByTime(100)
    expect(tokens).toEqual([50, 61, 72])
  } finally {
    vi.useRealTimers()
  }
})
