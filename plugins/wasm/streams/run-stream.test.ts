/** Events pass the module chain in order, for any output of the modules and any missing instances. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFrame, encodeFrame, type FetchedHead } from '../../../wasm-sdk/abi.ts'
import type { Guest, GuestCall, GuestOrder } from '../instances/guest.ts'
import type {
  LoadedModule,
  OutEvent,
  StreamEvent,
  StreamPause,
  StreamReport,
  StreamResume,
} from '../threads/guest-task.ts'
import { StreamRun } from './run-stream.ts'

const KINDS = ['pass', 'drop', 'twice', 'count', 'last', 'fails', 'fetch'] as const
type Kind = (typeof KINDS)[number]

interface Said {
  readonly action?: string
  readonly url?: string
  readonly events?: readonly StreamEvent[]
  readonly state?: string
}

const event = (data: string): StreamEvent => ({ name: null, data })

/** The output of a module of the given kind; `fails` for a failed call. */
function say(kind: Kind, data: string, isEnd: boolean, state: string): Said | 'fails' {
  if (kind === 'fails') return 'fails'
  if (isEnd && kind === 'fetch') return { events: [event(`end ${state}f`)] }
  if (isEnd) return kind === 'last' ? { events: [event(`end ${state}`), event('bye')] } : {}
  if (kind === 'fetch') return { events: [event(`${data}f`)], state: `${state}f` }
  if (kind === 'drop') return { events: [] }
  if (kind === 'twice') return { events: [event(`${data}a`), event(`${data}b`)] }
  if (kind === 'count') return { events: [event(`${data}${state.length}`)], state: `${state}.` }
  return kind === 'last' ? { state: `${state}${data.length}` } : {}
}

/** Reference result, module by module: each one processes all events before the next. */
function told(kinds: readonly Kind[], data: readonly string[], isEnd: boolean) {
  const states = kinds.map(() => '')
  const through = (place: number, text: string): readonly string[] => {
    const said = say(kinds[place], text, false, states[place])
    if (said === 'fails') return [text]
    states[place] = said.state ?? states[place]
    return said.events?.map((one) => one.data) ?? [text]
  }
  const rest = (from: number, texts: readonly string[]) => {
    let current = texts
    for (let place = from; place < kinds.length; place++)
      current = current.flatMap((text) => through(place, text))
    return current
  }
  const out = data.flatMap((text, source) => rest(0, [text]).map((one) => ({ source, data: one })))
  for (let place = 0; isEnd && place < kinds.length; place++) {
    const said = say(kinds[place], '', true, states[place])
    const added = said === 'fails' ? [] : (said.events ?? []).map((one) => one.data)
    out.push(...rest(place + 1, added).map((one) => ({ source: data.length, data: one })))
  }
  return { out, states }
}

const FETCH = { action: 'fetch', url: 'http://a.example' }
const RESULT = { head: { error: null, status: 200, headers: [], body_bytes: 6 }, body: Buffer.from('result') }

interface Script {
  readonly kinds: readonly Kind[]
  /** Indices of the readiness checks that return false. */
  readonly missing?: readonly number[]
  readonly onFailure?: 'open' | 'closed'
  readonly failure?: 'error' | 'fuel'
}

/** Guests that behave like modules of the given kinds. */
function scripted({ kinds, missing = [], onFailure = 'open', failure = 'error' }: Script) {
  const calls: number[] = []
  let asked = 0
  const guests = kinds.map((kind, place) => ({
    module: { onFailure, uuid: String(place) } as LoadedModule,
    isReady: () => !missing.includes(asked++),
    call<T>({ input, read }: GuestOrder<T>): GuestCall<T> {
      calls.push(place)
      const { head, body } = decodeFrame(input)
      const {
        event: about,
        state,
        fetched,
      } = head as {
        event: { is_end: boolean }
        state: string
        fetched?: FetchedHead
      }
      // The body of the result follows.
      const data = body.toString('utf8', 0, body.length - (fetched?.body_bytes ?? 0))
      const isFetching = kind === 'fetch' && fetched === undefined
      const said = isFetching ? FETCH : say(kind, data, about.is_end, state)
      const report = {
        durationUs: 1,
        fuel: 1,
        logs: [],
        droppedLogs: 0,
        counted: [],
        observed: [],
        gauged: [],
      }
      if (said !== 'fails')
        return { value: read(encodeFrame(said)), report: { ...report, failure: null }, endedAtMs: 0 }
      return { value: null, report: { ...report, failure: { kind: failure, message: 'no' } }, endedAtMs: 0 }
    },
  }))
  return { guests: guests as unknown as readonly Guest[], calls }
}

function start(
  script: Script,
  data: readonly string[],
  isEnd: boolean,
  before: { states: readonly string[]; pause: StreamPause | null } = { states: [], pause: null },
) {
  const reports: StreamReport[] = []
  const { guests, calls } = scripted(script)
  const { kinds } = script
  const run = new StreamRun({
    guests,
    // As in a task shared with other streams, whose chains start with another module.
    modules: kinds.map((_, place) => place + 1),
    item: {
      point: 'OnStreamEvent',
      prefixes: kinds.map(() => '"request":{},"response":{}'),
      states: kinds.map((_, place) => before.states[place] ?? ''),
      requestId: 'req-1',
      tenant: null,
      firstIndex: 0,
      events: data.map(event),
      isEnd,
      resume: before.pause && resumeOf(before.pause),
      maxFetches: 4,
    },
    reports,
    fuel: null,
  })
  return { run, reports, guests, calls }
}

function resumeOf(pause: StreamPause): StreamResume {
  const uuid = String(pause.pending.at(-1)?.place ?? pause.ended)
  return { ...pause, fetched: { ...RESULT, uuid, state: '', count: 1, untilMs: 0 } }
}

test('the result equals module-by-module processing, for any missing instances and fetches', () => {
  const streams = fc.record({
    kinds: fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 4 }),
    data: fc.array(fc.stringMatching(/^[a-c]{0,3}$/), { maxLength: 4 }),
    isEnd: fc.boolean(),
    missing: fc.array(fc.nat({ max: 40 }), { maxLength: 6 }),
  })
  fc.assert(
    fc.property(streams, ({ kinds, data, isEnd, missing }) => {
      const out: OutEvent[] = []
      let before: { states: readonly string[]; pause: StreamPause | null } = { states: [], pause: null }
      do {
        const { run, reports, guests, calls } = start({ kinds, missing }, data, isEnd, before)
        let waits = 0
        for (let guest = run.next(); guest !== null; guest = run.next()) {
          expect(guests).toContain(guest)
          waits++
        }
        expect(waits).toBeLessThanOrEqual(missing.length)
        out.push(...run.result.out)
        expect(run.result.failedClosed).toBe(-1)
        expect(reports.map(({ module }) => module - 1)).toEqual(calls)
        before = run.result
      } while (before.pause !== null)
      const { states } = before
      const expected = told(kinds, data, isEnd)
      const texts = out.map(({ source, written }) => ({ source, data: written?.data ?? data[source] }))
      expect({ out: texts, states }).toEqual(expected)
    }),
    { numRuns: 500 },
  )
})

test('no module is called after a failure with onFailure closed', () => {
  const script: Script = { kinds: ['twice', 'fails', 'pass'], onFailure: 'closed' }
  const { run, calls } = start(script, ['a', 'b'], true)
  expect(run.next()).toBeNull()
  expect(calls).toEqual([0, 1])
  expect(run.result.failedClosed).toBe(2)
})

test('a module without fuel is not called for the remaining events', () => {
  const script: Script = { kinds: ['twice', 'fails', 'count'], failure: 'fuel' }
  const { run, calls } = start(script, ['a', 'b'], true)
  expect([run.hasExhausted, run.hasSkipped]).toEqual([false, false])
  expect(run.next()).toBeNull()
  expect(calls).toEqual([0, 1, 2, 2, 0, 2, 2, 0, 2])
  const data = run.result.out.map(({ written }) => written?.data)
  expect(data).toEqual(['aa0', 'ab1', 'ba2', 'bb3'])
  expect([run.hasExhausted, run.hasSkipped]).toEqual([true, true])
})
