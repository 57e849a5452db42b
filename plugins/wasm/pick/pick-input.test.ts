/** The input frame of a routing module: one JSON head and the body, for any fleet and request. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { CandidateView, EngineLoad, PickRequest, WorkerEntry } from '#kernel'
import { decodeFrame, type GuestInput } from '../../../wasm-sdk/abi.ts'
import { PickInput } from './pick-input.ts'

const LIMITS = { maxCandidates: 4, maxBodyBytes: 8, headers: ['x-team', 'x-other'] }
const ALL = { headers: true, request_body: true }

interface Shown {
  readonly id: string
  readonly labels: Record<string, string>
  readonly inFlight: number
  readonly load: EngineLoad | null
}

function viewOf(workers: readonly Shown[]): CandidateView {
  const entries = workers.map(
    ({ id, labels }, slot) => ({ slot, id, url: `http://${id}`, labels, cost: 1 }) as unknown as WorkerEntry,
  )
  return {
    length: workers.length,
    worker: (index: number) => entries[index],
    inFlight: (index: number) => workers[index].inFlight,
    hasLoads: workers.some(({ load }) => load !== null),
    load: (index: number) => workers[index].load,
  } as unknown as CandidateView
}

function requestOf(model: string, body: string, headers: Record<string, string> = {}): PickRequest {
  return { model, leg: 'whole', body: Buffer.from(body), tokenIds: null, header: (name) => headers[name] }
}

const read = (frame: Buffer) => {
  const { head, body } = decodeFrame(frame)
  return { head: head as GuestInput, body: body.toString() }
}

const load = fc.record({
  queuedTokens: fc.integer({ min: -1 }),
  usedTokens: fc.integer({ min: -1 }),
  kvUsage: fc.double(),
  tokensPerSecond: fc.nat(),
  atMs: fc.nat(),
})
const worker: fc.Arbitrary<Shown> = fc.record({
  id: fc.string({ unit: 'grapheme' }),
  labels: fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string(), { noNullPrototype: true }),
  inFlight: fc.nat(),
  load: fc.option(load),
})

test('the frame contains labels, models, headers and bodies unchanged', () => {
  const text = fc.string({ unit: 'grapheme' })
  fc.assert(
    fc.property(
      fc.array(worker, { minLength: 1, maxLength: 9 }),
      text,
      text,
      text,
      fc.nat(8),
      (workers, model, body, team, begin) => {
        const start = begin % workers.length
        const input = new PickInput(LIMITS)
        const request = requestOf(model, body, { 'x-team': team, 'x-hidden': 'no' })
        for (let time = 0; time < 2; time++) {
          const { head, body: shown } = read(input.write(viewOf(workers), request, start, ALL))
          const expected = Array.from(
            { length: Math.min(4, workers.length) },
            (_, i) => workers[(start + i) % workers.length],
          )
          expect(head.pick?.candidates).toEqual(
            expected.map(({ id, labels, inFlight, load: told }) => ({
              url: `http://${id}`,
              labels: JSON.parse(JSON.stringify(labels)),
              cost: 1,
              in_flight: inFlight,
              load: told && {
                queued_tokens: told.queuedTokens,
                used_tokens: told.usedTokens,
                kv_usage: Number.isFinite(told.kvUsage) ? told.kvUsage + 0 : -1,
                tokens_per_second: told.tokensPerSecond,
              },
            })),
          )
          const bytes = Buffer.byteLength(body)
          expect([head.pick?.model, head.pick?.body_bytes, shown]).toEqual([
            model,
            bytes,
            bytes > 8 ? '' : body,
          ])
          expect(head.request.headers).toEqual([['x-team', team]])
        }
      },
    ),
  )
})

test('the frame contains only what the module needs', () => {
  const request = requestOf('m', 'body', { 'x-team': 'red', 'x-other': 'b' })
  const one = viewOf([{ id: 'a', labels: {}, inFlight: 0, load: null }])
  const write = (needs: Parameters<PickInput['write']>[3]) =>
    read(new PickInput(LIMITS).write(one, request, 0, needs))
  expect(write({ headers: false, request_body: false })).toMatchObject({ body: '' })
  expect(write({ headers: false, request_body: false }).head.request.headers).toBeUndefined()
  const named = write({ headers: ['x-other', 'authorization'], request_body: true })
  expect([named.head.request.headers, named.body]).toEqual([[['x-other', 'b']], 'body'])
})

test('targets of a virtual model are candidates with a model and a weight', () => {
  const target = { model: 'a"b', weight: 9, labels: { pool: 'x' }, accepts: null, parameters: null }
  const frame = new PickInput(LIMITS).writeTargets(
    [target, target],
    requestOf('assistant', 'body'),
    () => 3,
    ALL,
  )
  const { head, body } = read(frame)
  const shown = { in_flight: 3, load: null, cost: 1, labels: { pool: 'x' }, url: '', model: 'a"b', weight: 9 }
  expect([head.pick, body]).toEqual([
    { model: 'assistant', leg: 'target', body_bytes: 4, candidates: [shown, shown] },
    'body',
  ])
})
