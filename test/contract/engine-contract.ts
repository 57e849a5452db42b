/** Contract of engine adapters, independent of the worker protocol; `engine.test.ts` runs it over each. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type {
  EngineAdapter,
  EngineAttempt,
  GenerationEvent,
  GenerationRequest,
  PreparedPrompt,
} from '#kernel'
import type { GatewayError, HeaderList, WorkerEntry } from '../../kernel/index.ts'
import { breachesOf } from '../support/generation-grammar.ts'

/** A worker response on the wire, and its expected content. */
export interface EngineAnswer {
  readonly name: string
  readonly headers?: HeaderList
  /** Chunks from the transport; `cutsAnywhere` transports may split at any byte, others only between chunks. */
  readonly chunks: readonly Buffer[]
  readonly text: string
  /** Name and arguments of each tool call. */
  readonly calls?: readonly (readonly [name: string, text: string])[]
  /** The adapter reports a failure instead of the end. */
  readonly fails?: boolean
}

export interface EngineCase {
  readonly adapter: EngineAdapter
  readonly worker: WorkerEntry
  readonly otherWorker: WorkerEntry
  readonly cutsAnywhere: boolean
  /** Expected result of `prepare` for `PLAIN_REQUEST`; absent for adapters without `prepare`. */
  readonly prepared?: PreparedPrompt
  readonly answers: readonly EngineAnswer[]
}

export const PLAIN_REQUEST: GenerationRequest = {
  model: 'm',
  prompt: { kind: 'chat', messages: [{ role: 'user', content: 'Grüße, "you"' }] },
  tools: [],
  toolChoice: null,
  constraint: null,
  sampling: { maxTokens: 50 },
  reasoning: null,
  choices: 1,
  topLogprobs: null,
}

function attemptFor({ worker, prepared }: EngineCase): EngineAttempt {
  const facts = { requestId: 'r', requestHeaders: [], header: () => undefined, warn: () => {} }
  const ctx = facts as Partial<EngineAttempt['ctx']> as EngineAttempt['ctx']
  return {
    request: PLAIN_REQUEST,
    model: 'm',
    prepared: prepared ?? null,
    worker,
    id: 'r-1',
    quirks: {},
    stream: true,
    ctx,
  }
}

function read(one: EngineCase, answer: EngineAnswer, chunks: readonly Buffer[]) {
  const events: GenerationEvent[] = []
  const failures: GatewayError[] = []
  let isOver = false
  const attempt = attemptFor(one)
  one.adapter.requestFor(attempt)
  const reader = one.adapter.read(attempt, {
    emit: (event) => void events.push(event),
    fail: (error) => {
      failures.push(error)
      isOver = true
    },
    stop: () => {
      isOver = true
    },
    defer: (next) => next(),
  })
  reader.onStart(answer.headers ?? [])
  for (const chunk of chunks) if (!isOver) reader.onData(Buffer.from(chunk))
  if (!isOver) reader.onEnd()
  return { events, failures }
}

function contentOf({ events, failures }: ReturnType<typeof read>) {
  const calls = new Map<number, [string, string]>()
  let text = ''
  for (const event of events) {
    if (event.type === 'text') text += event.delta
    if (event.type === 'tool_call') calls.set(event.index, [event.name, ''])
    if (event.type === 'tool_arguments') (calls.get(event.index) as [string, string])[1] += event.delta
  }
  return { text, calls: [...calls.values()], hasFailed: failures.length > 0 }
}

export function engineContract(name: string, open: () => EngineCase): void {
  describe(`engine adapter ${name}`, () => {
    test('accepts its own workers and no others', () => {
      const { adapter, worker, otherWorker } = open()
      expect([adapter.accepts(worker), adapter.accepts(otherWorker)]).toEqual([true, false])
    })

    test('builds a request with a method, a path and a body', () => {
      const one = open()
      const { method, path, body } = one.adapter.requestFor(attemptFor(one))
      expect(method).not.toBe('')
      expect(path).toMatch(/^\//)
      expect(body).not.toBeNull()
    })

    for (const answer of open().answers) {
      test(`${answer.name}: the events follow the grammar and carry the worker's content`, () => {
        const one = open()
        const result = read(one, answer, answer.chunks)
        if (answer.fails !== true) expect(breachesOf(result.events)).toEqual([])
        expect(contentOf(result)).toEqual({
          text: answer.text,
          calls: (answer.calls ?? []).map((call) => [...call]),
          hasFailed: answer.fails === true,
        })
      })

      if (!open().cutsAnywhere) continue
      test(`${answer.name}: every split of the bytes gives the same events`, () => {
        const one = open()
        const bytes = Buffer.concat([...answer.chunks])
        const whole = contentOf(read(one, answer, [bytes]))
        fc.assert(
          fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 20 }), (cuts) => {
            const at = [...new Set([0, ...cuts, bytes.length])].sort((a, b) => a - b)
            const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
            expect(contentOf(read(one, answer, pieces))).toEqual(whole)
          }),
          { numRuns: 50 },
        )
      })
    }

    test('a truncated response is never reported as finished', () => {
      const one = open()
      const [answer] = one.answers
      const { events } = read(one, answer, [answer.chunks[0].subarray(0, answer.chunks[0].length >> 1)])
      expect(events.some(({ type }) => type === 'finished')).toBe(false)
    })
  })
}
