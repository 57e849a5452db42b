/** Expectations written from observed behaviour match it in the next comparison. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import { differences, type Observed } from '../testing/compare.ts'
import type { Expectation } from '../testing/module-case.ts'
import { expectationOf } from './golden-file.ts'

const NOTHING: Observed = {
  action: 'continue',
  status: null,
  headers: [],
  headers_set: [],
  headers_add: [],
  headers_remove: [],
  body: null,
  events: [],
  pieces: [],
  prompt: [],
  choice: null,
  fetches: [],
  logs: [],
  metrics: {},
  failure: null,
}

const text = fc.oneof(fc.string(), fc.json(), fc.constant('[1'), fc.constant('null'))
const pairs = fc
  .uniqueArray(fc.stringMatching(/^[a-z-]{1,6}$/), { maxLength: 3 })
  .chain((names) => fc.tuple(...names.map((name) => fc.tuple(fc.constant(name), fc.string()))))
const observed: fc.Arbitrary<Observed> = fc.record({
  action: fc.constantFrom('continue', 'reject', 'modify', 'fetch'),
  status: fc.option(fc.integer({ min: 200, max: 599 })),
  headers: pairs,
  headers_set: pairs,
  headers_add: pairs,
  headers_remove: fc.array(fc.string(), { maxLength: 2 }),
  body: fc.option(text),
  events: fc.array(fc.record({ name: fc.option(fc.string()), data: text }), { maxLength: 3 }),
  pieces: fc.array(fc.string(), { maxLength: 3 }),
  prompt: fc.array(fc.string(), { maxLength: 3 }),
  choice: fc.option(fc.nat(5)),
  fetches: fc.array(fc.record({ url: fc.string(), method: fc.string(), headers: pairs, body: text }), {
    maxLength: 2,
  }),
  logs: fc.array(fc.string(), { maxLength: 2 }),
  metrics: fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.nat(), { maxKeys: 2, noNullPrototype: true }),
  failure: fc.option(fc.string({ minLength: 1 }), { freq: 5 }),
})
const points = fc.constantFrom<AttachPoint>(
  'OnRequest',
  'OnResponse',
  'OnError',
  'OnStreamEvent',
  'OnText',
  'OnPromptText',
  'OnPick',
)

/** The expectation after a round trip through a file. */
const reread = (expectation: Expectation) => JSON.parse(JSON.stringify(expectation)) as Expectation

test('a recorded or corrected expectation matches its observation, and rewriting it changes nothing', () => {
  const expects = fc.constantFrom<Expectation>(
    {},
    { status: 1, body: 'x' },
    { events: [] },
    { fails: 'nobody' },
  )
  fc.assert(
    fc.property(points, expects, observed, (on, expect_, seen) => {
      const made = reread(expectationOf({ on, expect: expect_ }, seen))
      expect(differences(made, seen)).toEqual([])
      if (Object.keys(made).length > 0) expect(expectationOf({ on, expect: made }, seen)).toEqual(made)
    }),
  )
})

describe('a correction', () => {
  test('changes only members that are listed and differ', () => {
    const seen: Observed = { ...NOTHING, action: 'modify', status: 503, headers_set: [['a', 'b1']] }
    const before: Expectation = { status: 500, headers_set: { a: { matches: '^b' } } }
    expect(expectationOf({ on: 'OnResponse', expect: before }, seen)).toEqual({
      status: 503,
      headers_set: { a: { matches: '^b' } },
    })
  })

  test('omits repeated headers, which a case cannot express', () => {
    const seen: Observed = {
      ...NOTHING,
      action: 'modify',
      headers_add: [
        ['via', 'a'],
        ['Via', 'b'],
      ],
    }
    expect(expectationOf({ on: 'OnResponse', expect: {} }, seen)).toEqual({ action: 'modify' })
    const before: Expectation = { headers_add: { via: 'a' } }
    expect(expectationOf({ on: 'OnResponse', expect: before }, seen)).toEqual(before)
  })

  test('of a failure omits limits and source lines', () => {
    const of = (failure: string) => expectationOf({ on: 'OnError', expect: {} }, { ...NOTHING, failure })
    expect(of('the call exceeded 1000 ms')).toEqual({ fails: 'the call exceeded' })
    expect(of('no way at assembly/index.ts:10:35')).toEqual({ fails: 'no way' })
  })
})
