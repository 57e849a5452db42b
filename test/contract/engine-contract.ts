/** What every engine adapter must keep to, whatever its workers speak: run by `engine.test.ts` over each of them. */
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

/** One answer of a worker on the wire, and what it says. */
export interface EngineAnswer {
  readonly name: string
  readonly headers?: HeaderList
  /** As the transport hands it over: `cutsAnywhere` transports may cut it at any byte, others at these borders only. */
  readonly chunks: readonly Buffer[]
  readonly text: string
  /** Name and arguments of each tool call. */
  readonly calls?: readonly (readonly [name: string, text: string])[]
  /** The adapter tells a failure in place of the end. */
  readonly fails?: boolean
}

export interface EngineCase {
  readonly adapter: EngineAdapter
  readonly worker: WorkerEntry
  readonly stranger: WorkerEntry
  readonly cutsAnywhere: boolean
  /** What its `prepare` gives for `PLAIN_REQUEST`; absent for adapters without it. */
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
  const facts = { requestId: 'r', requestHeaders: [], header: () => undefined }
  const ctx = facts as Partial<EngineAttempt['ctx']> as EngineAttempt['ctx']
  return {
    request: PLAIN_REQUEST,
    model: 'm',
    prepared: prepared ?? null,
    worker,
    id: 'r-1',
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

function told({ events, failures }: ReturnType<typeof read>) {
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
      const { adapter, worker, stranger } = open()
      expect([adapter.accepts(worker), adapter.accepts(stranger)]).toEqual([true, false])
    })

    test('makes a request that names the model and carries the words of the prompt', () => {
      const one = open()
      const { method, path, body } = one.adapter.requestFor(attemptFor(one))
      expect(method).not.toBe('')
      expect(path).toMatch(/^\//)
      expect(body).not.toBeNull()
    })

    for (const answer of open().answers) {
      test(`${answer.name}: the events keep the order of the contract and say what the worker said`, () => {
        const one = open()
        const result = read(one, answer, answer.chunks)
        if (answer.fails !== true) expect(breachesOf(result.events)).toEqual([])
        expect(told(result)).toEqual({
          text: answer.text,
          calls: (answer.calls ?? []).map((call) => [...call]),
          hasFailed: answer.fails === true,
        })
      })

      if (!open().cutsAnywhere) continue
      test(`${answer.name}: wherever the bytes are cut, it says the same`, () => {
        const one = open()
        const bytes = Buffer.concat([...answer.chunks])
        const whole = told(read(one, answer, [bytes]))
        fc.assert(
          fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 20 }), (cuts) => {
            const at = [...new Set([0, ...cuts, bytes.length])].sort((a, b) => a - b)
            const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
            expect(told(read(one, answer, pieces))).toEqual(whole)
          }),
          { numRuns: 50 },
        )
      })
    }

    test('an answer that stops in the middle is never told as finished', () => {
      const one = open()
      const [answer] = one.answers
      const { events } = read(one, answer, [answer.chunks[0].subarray(0, answer.chunks[0].length >> 1)])
      expect(events.some(({ type }) => type === 'finished')).toBe(false)
    })
  })
}
