import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { balanceErrors } from '../balance/balance-errors.ts'
import type { Attempt, PickOptions } from '../balance/worker-balance.ts'
import type { PairHandler } from '../contracts/pair.ts'
import type { RelayContext, SinkListener } from '../contracts/relay-context.ts'
import { type Transport, UpstreamFailure, type UpstreamHandler } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { CallParts } from './call-parts.ts'
import { Relay } from './relay.ts'
import { ClientHeaders } from './response-headers.ts'
import { RetryRules } from './retry.ts'
import { StalledStreams } from './stalled-streams.ts'
import { Transports } from './transports.ts'
import { toUpstreamError } from './upstream-errors.ts'
import { WorkerLimits } from './worker-limits.ts'
import { OutgoingHeaders } from './worker-request.ts'
import { WorkerWarnings } from './worker-warnings.ts'

const RETRY = {
  maxAttempts: 5,
  initialBackoffMs: 50,
  maxBackoffMs: 30_000,
  maxWaitMs: 1_000,
  backoffMultiplier: 1.5,
  jitterFactor: 0,
  statuses: [500, 503],
}
const LIMITS = { connectMs: 0, headMs: 0, firstTokenMs: 0, idleMs: 0, requestMs: 100_000, models: {} }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Outcomes of one attempt after it is sent. */
type Fate =
  | 'answered'
  | 'refused'
  | 'refused endlessly'
  | 'missing'
  | 'unreachable'
  | 'exhausted'
  | 'broken'
  | 'nobody'
  | 'silent'

/** A relay between a client and workers that tests drive. */
class Stage {
  readonly attempts: (Attempt & { calls: string[] })[] = []
  readonly excluded: (readonly number[])[] = []
  readonly sentAtMs: number[] = []
  /** Response events, in order. */
  readonly replies: string[] = []
  aborted = 0
  handler: UpstreamHandler | null = null
  listener: SinkListener | null = null
  /** All attempts are at the same worker. */
  isAlone = false
  /** Two workers share an attempt. */
  isPair = false
  pairHandler: PairHandler | null = null
  /** If true, no worker can be picked. */
  isEmpty = false

  start(retry = RETRY): void {
    Relay.start(this.#context(), { model: 'm', stream: false, path: '/x' }, this.#parts(retry))
  }

  meet(fate: Fate): void {
    const handler = this.handler as UpstreamHandler
    if (fate === 'answered' || fate === 'missing') {
      handler.onResponseStart(fate === 'answered' ? 200 : 404, [], 2)
      handler.onResponseData(Buffer.from('ok'))
      handler.onResponseEnd()
    } else if (fate === 'refused') {
      handler.onResponseStart(503, ['content-type', 'application/json'], 2)
      handler.onResponseData(Buffer.from('{}'))
      handler.onResponseEnd()
    } else if (fate === 'refused endlessly') handler.onResponseStart(500, [], -1)
    else if (fate === 'unreachable') handler.onResponseError(new UpstreamFailure('connect', 'refused', false))
    else if (fate === 'exhausted') {
      const cause = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
      handler.onResponseError(new UpstreamFailure('connect', cause.message, false, { cause }))
    } else if (fate === 'broken') {
      handler.onResponseStart(200, [], -1)
      handler.onResponseError(new UpstreamFailure('reset', 'gone', true))
    }
  }

  #parts(retry: typeof RETRY): CallParts {
    const transports = new Transports()
    const transport: Pick<Transport, 'mode' | 'open'> = {
      mode: 'http',
      open: (_worker, _request, _limits, handler) => {
        this.handler = handler
        this.sentAtMs.push(Date.now())
        return { pause() {}, resume() {}, abort: () => void this.aborted++ }
      },
    }
    transports.add(transport as Transport)
    transports.addPairs({
      mode: 'http',
      requests: (_pair, whole) => whole,
      start: (_pair, _requests, handler) => {
        this.pairHandler = handler
        return { pause() {}, resume() {}, abort() {} }
      },
    })
    const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
    return {
      balance: {
        usesPair: () => this.isPair,
        noteError() {},
        canonicalModel: (model: string) => model,
        hasUntried: () => !this.isAlone,
        // Reports a failure later than the attempt.
        attempt: (worker: WorkerEntry) => ({ worker, failed() {}, release() {} }),
        pick: (_ctx: RelayContext, model: string, options?: PickOptions) => this.#pick(model, options),
      },
      outgoing: new OutgoingHeaders([], transports),
      clientHeaders: new ClientHeaders([]),
      warnings: new WorkerWarnings({ misnamed() {} }, log),
      transports,
      limits: new WorkerLimits(LIMITS),
      streams: new StalledStreams({ stallMs: 0, progressed() {}, stalled() {} }),
      retry: new RetryRules(retry),
      traffic: null,
      targets: null,
      countsUsage: false,
      log,
    } as unknown as CallParts
  }

  #pick(model: string, options?: PickOptions): Attempt {
    this.excluded.push([...(options?.excluded ?? [])])
    if (this.isEmpty) throw balanceErrors.no_available_workers(model)
    const calls: string[] = []
    const call = (name: string) => () => void calls.push(name)
    const attempt = {
      worker: workerEntry({ slot: this.isAlone ? 0 : this.attempts.length }),
      policy: 'p',
      choice: null,
      firstByte: () => {},
      succeeded: call('succeeded'),
      refused: call('refused'),
      failed: call('failed'),
      release: call('release'),
      calls,
    }
    this.attempts.push(attempt)
    return attempt
  }

  #context(): RelayContext {
    const reply = (what: string) => void this.replies.push(what)
    return {
      identity: null,
      hooks: { onAttempt: null, onUpstreamRequest: null, onResponse: null },
      route: {},
      requestId: 'id',
      rawBody: Buffer.from('{}'),
      forwardedHeaders: [],
      header: () => undefined,
      setListener: (listener: SinkListener | null) => {
        this.listener = listener
      },
      forgetBody() {},
      startStream: (status: number) => reply(`stream ${status}`),
      writeStream: () => true,
      endStream: () => reply('end'),
      sendWhole: (status: number, _headers: unknown, body: Buffer) => reply(`${status} ${body}`),
      fail: (error: Error & { code?: string }) => reply(`error ${error.code}`),
    } as unknown as RelayContext
  }
}

describe('back-off between attempts', () => {
  test('grows from attempt to attempt; the last response is passed on', () => {
    const stage = new Stage()
    stage.start()
    for (let attempt = 1; attempt <= 5; attempt++) {
      stage.meet('refused')
      vi.runAllTimers()
    }
    const gaps = stage.sentAtMs.slice(1).map((atMs, index) => atMs - stage.sentAtMs[index])
    expect(gaps).toEqual([50, 75, 113, 169])
    expect(stage.excluded).toEqual([[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3]])
    expect(stage.replies).toEqual(['503 {}'])
  })

  test('ends when the client disconnects, without a timer left', () => {
    const stage = new Stage()
    stage.start()
    stage.meet('unreachable')
    expect(vi.getTimerCount()).toBe(1)
    stage.listener?.onCancel()
    expect(vi.getTimerCount()).toBe(0)
    expect(stage.attempts.map(({ calls }) => calls)).toEqual([['failed', 'release']])
    expect(stage.replies).toEqual([])
  })

  test('lets an error response end until the next attempt, and then aborts it', () => {
    const stage = new Stage()
    stage.start()
    stage.meet('refused')
    vi.runAllTimers()
    expect(stage.aborted).toBe(0)
    stage.meet('refused endlessly')
    expect(stage.aborted).toBe(0)
    vi.runAllTimers()
    expect(stage.aborted).toBe(1)
    stage.handler?.onResponseStart(503, [], 10)
    vi.runAllTimers()
    // Announced by content-length, but not received in time.
    expect(stage.aborted).toBe(2)
  })
})

test('a worker failure counts once for the worker, a local failure never', () => {
  const stage = new Stage()
  stage.isAlone = true
  stage.start()
  for (const fate of ['exhausted', 'unreachable', 'exhausted', 'refused'] as const) {
    stage.meet(fate)
    vi.runAllTimers()
  }
  expect(stage.attempts.map(({ calls }) => calls)).toEqual([
    ['release'],
    ['failed', 'release'],
    ['release'],
    ['release'],
    [],
  ])
})

test('a local failure counts for neither worker of a pair', () => {
  const stage = new Stage()
  stage.isPair = true
  stage.start({ ...RETRY, maxAttempts: 1 })
  const cause = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  const failure = new UpstreamFailure('connect', cause.message, false, { cause })
  const error = toUpstreamError(failure, false)
  stage.pairHandler?.onLegFailed({ leg: 'prefill', error, status: 0, headers: null, failure })
  expect(stage.attempts.map(({ calls }) => calls)).toEqual([['release'], ['release']])
  expect(stage.replies).toEqual(['error gateway_exhausted'])
})

test('in any sequence each attempt is released once, counted at most once, and the client gets one response', () => {
  const fate = fc.constantFrom<Fate>(
    'answered',
    'refused',
    'refused endlessly',
    'missing',
    'unreachable',
    'exhausted',
    'broken',
    'nobody',
    'silent',
  )
  const maxAttempts = fc.integer({ min: 1, max: 6 })
  fc.assert(
    fc.property(
      fc.array(fate, { minLength: 1, maxLength: 10 }),
      maxAttempts,
      fc.boolean(),
      (fates, most, leaves) => {
        const stage = new Stage()
        stage.isEmpty = fates[0] === 'nobody'
        stage.start({ ...RETRY, maxAttempts: most })
        for (const [index, next] of fates.entries()) {
          if (next === 'silent') break
          if (!stage.isEmpty && stage.listener !== null) stage.meet(next === 'nobody' ? 'unreachable' : next)
          stage.isEmpty = fates[index + 1] === 'nobody'
          if (leaves && index === fates.length - 1) break
          vi.runAllTimers()
        }
        stage.listener?.onCancel()
        vi.runAllTimers()
        expect(stage.sentAtMs.length).toBe(stage.attempts.length)
        expect(stage.excluded.length).toBeLessThanOrEqual(most)
        for (const { calls } of stage.attempts) {
          expect(calls.filter((call) => call === 'release')).toHaveLength(1)
          expect(calls.filter((call) => call !== 'release').length).toBeLessThanOrEqual(1)
        }
        expect(stage.replies.filter((reply) => !reply.startsWith('stream')).length).toBeLessThanOrEqual(1)
        expect(stage.listener).toBeNull()
        expect(vi.getTimerCount()).toBe(0)
      },
    ),
    { numRuns: 300 },
  )
})
