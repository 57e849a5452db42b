/** Streams whose request ends elsewhere: their pings stop, and nothing is written later. */
import { expect, test, vi } from 'vitest'
import type { GenerationListener, GenerationRequest, ToolTurn } from '#kernel'
import { ResponseFlow } from '../../../../kernel/http/response-flow.ts'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { answerGeneration, answerWithTools } from './answer.ts'
import { Pings, type PingTarget } from './message-stream.ts'

class CountedPings extends Pings {
  readonly targets = new Set<PingTarget>()

  override add(target: PingTarget): void {
    this.targets.add(target)
  }

  override remove(target: PingTarget): void {
    this.targets.delete(target)
  }
}

/** An open request, as a response sees it. */
function open(count: Promise<number> | null = null) {
  const pings = new CountedPings(1_000)
  const cancels: (() => void)[] = []
  const aborts: (() => void)[] = []
  const sse = vi.fn(() => ({ write: () => true, end: () => {} }))
  const generation = { abort: vi.fn() }
  let listener = null as GenerationListener | null
  const ctx = {
    onAbort: (abort: () => void) => void aborts.push(abort),
    onCancel: (cancel: () => void) => void cancels.push(cancel),
    sse,
    flow: new ResponseFlow(),
    fail: vi.fn(),
  }
  const run = (given: { listener: GenerationListener }) => {
    listener = given.listener
    return generation
  }
  const host = {
    use: () => ({ open: (_ctx: unknown, _request: unknown, options: never) => run(options) }),
    balance: { canonicalModel: () => 'm', workersOf: () => [workerEntry({ slot: 0, apis: ['chat'] })] },
  }
  const loop = {
    run: (_ctx: unknown, _turn: unknown, heard: GenerationListener) => run({ listener: heard }),
  }
  return {
    ctx,
    loop,
    pings,
    parts: { host, pings, tokenizers: count === null ? undefined : { find: () => ({ count: () => count }) } },
    tell: (event: object) => listener?.onEvent(event as never),
    end: {
      'the client disconnects': () => {
        for (const cancel of cancels) cancel()
        for (const abort of aborts) abort()
      },
      'a hook fails': () => {
        for (const cancel of cancels) cancel()
      },
    },
  }
}

const request = {
  model: 'm',
  prompt: { kind: 'chat', messages: [] },
  tools: [],
  sampling: {},
} as unknown as GenerationRequest
const shared = { model: 'm', blocks: { thinking: 'text', maxCalls: 1 }, headers: [] } as const
const options = { ...shared, request, open: {} } as const
const started = { type: 'started', inputTokens: 5, worker: workerEntry({ slot: 0 }) }
const WAYS = ['the client disconnects', 'a hook fails'] as const

test.each(WAYS)('a stream gets no further pings when %s', (way) => {
  const { ctx, parts, pings, tell, end } = open()
  answerGeneration(parts as never, ctx as never, options, true)
  tell(started)
  expect(pings.targets.size).toBe(1)
  end[way]()
  expect(pings.targets.size).toBe(0)
  tell({ type: 'text', choice: 0, delta: 'late' })
  expect(pings.targets.size).toBe(0)
})

test.each(WAYS)('a stream does not start when %s during the prompt count', async (way) => {
  const count = Promise.withResolvers<number>()
  const { ctx, parts, pings, tell, end } = open(count.promise)
  answerGeneration(parts as never, ctx as never, options, true)
  tell({ ...started, inputTokens: null })
  end[way]()
  count.resolve(7)
  await new Promise((resolve) => setImmediate(resolve))
  expect([pings.targets.size, ctx.sse.mock.calls.length]).toEqual([0, 0])
})

test.each(WAYS)('a tool turn gets no further pings when %s', (way) => {
  const { ctx, loop, parts, pings, tell, end } = open()
  const turn = { request, stream: true } as ToolTurn
  answerWithTools(parts as never, loop as never, ctx as never, { ...shared, turn })
  tell({ type: 'started', started })
  expect(pings.targets.size).toBe(1)
  end[way]()
  expect(pings.targets.size).toBe(0)
})
