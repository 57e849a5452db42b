/** The text view of an answer: nothing is lost, repeated or reordered, whatever an editor holds back and however late it is. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GenerationEvent, RequestContext, TextEditor, TextStream } from '#kernel'
import { breachesOf } from '../../../test/support/generation-grammar.ts'
import { workerEntry } from '../../../test/support/worker-entry.ts'
import { TextView } from './text-view.ts'

const STARTED: GenerationEvent = {
  type: 'started',
  model: 'm',
  id: null,
  createdAtSec: 1,
  inputTokens: null,
  systemFingerprint: null,
  worker: workerEntry({ slot: 0 }),
}
const END: GenerationEvent[] = [
  { type: 'choice_done', choice: 0, reason: 'stop', matchedStop: null },
  { type: 'finished', usage: null },
]

interface Outcome {
  readonly events: GenerationEvent[]
  readonly errors: unknown[]
  /** Texts in order of their start. */
  readonly streams: TextStream[]
  readonly isFull: boolean[]
}

/** @param edit undefined leaves the text to the answer */
async function through(
  given: readonly GenerationEvent[],
  open: (stream: TextStream) => TextEditor | null,
): Promise<Outcome> {
  const outcome: Outcome = { events: [], errors: [], streams: [], isFull: [] }
  const view = new TextView({
    ctx: { warn: () => {} } as unknown as RequestContext,
    onText: (_, stream) => {
      outcome.streams.push(stream)
      return open(stream)
    },
    deliver: (event) => outcome.events.push(event),
    onError: (error) => outcome.errors.push(error),
    onFull: (isFull) => outcome.isFull.push(isFull),
  })
  for (const event of given) view.push(event)
  const isOver = () => outcome.errors.length > 0 || outcome.events.at(-1)?.type === given.at(-1)?.type
  for (let turn = 0; turn < 10_000 && !isOver(); turn++) await new Promise((resolve) => setImmediate(resolve))
  return outcome
}

/** Passes what it gets, but holds some of it back for a while; some of its answers are promises. */
class Holder implements TextEditor {
  #held = ''
  #turn = 0
  readonly #plan: readonly { readonly keep: number; readonly isLate: boolean }[]

  constructor(plan: readonly { readonly keep: number; readonly isLate: boolean }[]) {
    this.#plan = plan
  }

  edit(text: string, isLast: boolean): string | Promise<string> {
    const { keep, isLate } = this.#plan[this.#turn++ % this.#plan.length]
    const all = this.#held + text
    const end = isLast ? all.length : Math.max(0, all.length - keep)
    this.#held = all.slice(end)
    const passed = all.slice(0, end)
    return isLate ? new Promise((resolve) => setImmediate(() => resolve(passed))) : passed
  }
}

const delta = fc.stringMatching(/^[a-z😀]{1,4}$/u)
const text = delta.map(
  (said): GenerationEvent => ({ type: 'text', choice: 0, delta: said, logprobs: [tokenOf(said)] }),
)
const reasoning = delta.map((said): GenerationEvent => ({ type: 'reasoning', choice: 0, delta: said }))
const refusal = delta.map((said): GenerationEvent => ({ type: 'refusal', choice: 0, delta: said }))
const call = fc.tuple(fc.array(delta, { maxLength: 5 })).map(([parts]) => parts)

function tokenOf(token: string) {
  return { token, logprob: -1, bytes: null, top: [] }
}

/** Runs of each kind, and calls between them. */
const body = fc
  .array(
    fc.oneof(
      fc.array(text, { maxLength: 4 }),
      fc.array(reasoning, { maxLength: 4 }),
      fc.array(refusal, { maxLength: 2 }),
      call,
    ),
    { maxLength: 8 },
  )
  .map((runs) => {
    let index = 0
    return runs.flatMap((run): GenerationEvent[] => {
      if (run.some((one) => typeof one !== 'string')) return run as GenerationEvent[]
      const parts = run as string[]
      const of = { choice: 0, index: index++ }
      return [
        { type: 'tool_call', ...of, id: `call_${of.index}`, name: 'look' },
        ...parts.map((part): GenerationEvent => ({ type: 'tool_arguments', ...of, delta: part })),
        { type: 'tool_call_done', ...of },
      ]
    })
  })
const plan = fc.array(fc.record({ keep: fc.nat(6), isLate: fc.boolean() }), { minLength: 1, maxLength: 5 })

/** Neighbouring deltas of one text as one, without tokens. */
function joined(events: readonly GenerationEvent[]): object[] {
  const all: Record<string, unknown>[] = []
  for (const event of events) {
    const last = all.at(-1)
    if (!('delta' in event)) all.push({ ...event })
    else if (last?.type === event.type && last.index === ('index' in event ? event.index : undefined))
      last.delta = String(last.delta) + event.delta
    else all.push({ type: event.type, delta: event.delta, ...('index' in event && { index: event.index }) })
  }
  return all
}

test('an editor that changes nothing changes nothing, and events stay in order', async () => {
  await fc.assert(
    fc.asyncProperty(body, plan, async (events, steps) => {
      const given = [STARTED, ...events, ...END]
      const { events: seen, errors } = await through(given, () => new Holder(steps))
      expect(errors).toEqual([])
      expect(joined(seen)).toEqual(joined(given))
      expect(breachesOf(seen)).toEqual([])
      // Tokens are passed on only with exactly their text.
      for (const event of seen)
        if (event.type === 'text' && event.logprobs != null)
          expect(event.logprobs.map(({ token }) => token).join('')).toBe(event.delta)
    }),
    { numRuns: 300 },
  )
})

test('a character that is cut in two reaches the editor whole', async () => {
  const halves: GenerationEvent[] = ['a\ud83d', '\ude00', 'b'].map((said) => ({
    type: 'text',
    choice: 0,
    delta: said,
  }))
  const pieces: string[] = []
  const { events } = await through([STARTED, ...halves, ...END], () => ({
    edit: (piece) => {
      pieces.push(piece)
      return piece
    },
  }))
  expect(pieces).toEqual(['a', '😀', 'b', ''])
  expect(joined(events)).toMatchObject([{}, { delta: 'a😀b' }, {}, {}])
})

test('pieces that wait for an editor become one call, and the worker is paused meanwhile', async () => {
  const many = Array.from({ length: 200 }, (_, index): GenerationEvent[] => [
    { type: 'text', choice: 0, delta: `${index} ` },
    { type: 'annotation', choice: 0, annotation: {} },
  ]).flat()
  const { isFull, events } = await through(
    [STARTED, ...many, ...END],
    () => new Holder([{ keep: 0, isLate: true }]),
  )
  expect(isFull).toEqual([true, false])
  expect(events.at(-1)?.type).toBe('finished')
  let calls = 0
  const texts = many.filter(({ type }) => type === 'text')
  await through([STARTED, ...texts, ...END], () => ({
    edit: (piece) => {
      calls++
      return Promise.resolve(piece)
    },
  }))
  expect(calls).toBe(3)
})

test('held-back text of a failed answer is dropped', async () => {
  const failed = { type: 'failed', error: new Error('cut off') } as unknown as GenerationEvent
  const { events } = await through([STARTED, { type: 'text', choice: 0, delta: 'abc' }, failed], () => ({
    edit: (piece, isLast) => (isLast ? piece : ''),
  }))
  expect(events.map(({ type }) => type)).toEqual(['started', 'failed'])
})

test('an editor that throws ends the answer; nothing follows', async () => {
  for (const edit of [
    () => {
      throw new Error('broken')
    },
    () => Promise.reject(new Error('broken')),
  ]) {
    const { events, errors } = await through(
      [STARTED, { type: 'text', choice: 0, delta: 'abc' }, ...END],
      () => ({ edit }),
    )
    expect(errors).toMatchObject([{ message: 'broken' }])
    expect(events).toEqual([STARTED])
  }
})

test('what repeats an edited text in the form of the worker is removed', async () => {
  const item = { type: 'custom_tool_call', call_id: 'call_9', name: 'run', input: 'secret' }
  const given: GenerationEvent[] = [
    STARTED,
    { type: 'item_started', choice: 0, item: 'reasoning', members: {} },
    { type: 'reasoning', choice: 0, delta: 'secret' },
    { type: 'reasoning_signature', choice: 0, signature: 'signed' },
    { type: 'item_started', choice: 0, item: 'message', members: {} },
    { type: 'text', choice: 0, delta: 'a secret', tokenIds: [1], logprobs: [tokenOf('a secret')] },
    { type: 'part_done', choice: 0, part: { type: 'output_text', text: 'a secret', extra: 1 } },
    { type: 'native_started', choice: 0, number: 0, engine: 'responses', item },
    {
      type: 'native_event',
      choice: 0,
      engine: 'responses',
      of: { kind: 'native', number: 0 },
      event: { type: 'response.custom_tool_call_input.delta', delta: 'secret' },
    },
    {
      type: 'native_event',
      choice: 0,
      engine: 'responses',
      of: { kind: 'answer' },
      event: { type: 'response.unknown.done', text: 'a secret' },
    },
    { type: 'native_item', choice: 0, number: 0, engine: 'responses', item },
    {
      type: 'choice_done',
      choice: 0,
      reason: 'stop',
      matchedStop: null,
      tokenIds: [2],
      native: { engine: 'responses', content: [item], reason: null },
    },
    { type: 'finished', usage: null },
  ]
  const mask: TextEditor = { edit: (piece) => piece.replace('secret', '***') }
  const { events, streams } = await through(given, () => mask)
  expect(JSON.stringify(events)).not.toContain('secret')
  expect(JSON.stringify(events)).not.toContain('signed')
  expect(events.filter(({ type }) => type === 'part_done')).toMatchObject([{ part: { extra: 1 } }])
  expect(events.filter(({ type }) => type === 'native_item')).toMatchObject([{ item: { input: '***' } }])
  expect(streams.map(({ kind, call }) => [kind, call?.name])).toEqual([
    ['reasoning', undefined],
    ['text', undefined],
    ['tool_arguments', 'run'],
  ])
  // Nothing is removed if nothing was changed.
  expect((await through(given, () => ({ edit: (piece) => piece }))).events.at(-2)).toEqual(given.at(-2))
})

test('vendor data of an edited call or text is removed, that of others is kept, and calls keep their order', async () => {
  const signed = { google: { thought_signature: 'signed' } }
  const calls = (argumentsOfFirst: string): GenerationEvent[] => [
    { type: 'text', choice: 0, delta: 'hello' },
    { type: 'tool_call', choice: 0, index: 0, id: 'a', name: 'look', extraContent: signed },
    { type: 'tool_arguments', choice: 0, index: 0, delta: argumentsOfFirst },
    {
      type: 'tool_call',
      choice: 0,
      index: 1,
      id: 'b',
      name: 'look',
      extraContent: signed,
      members: { extra_content: signed, other: 1 },
    },
    { type: 'tool_arguments', choice: 0, index: 1, delta: '{}' },
    { type: 'tool_call', choice: 0, index: 2, id: 'c', name: 'look' },
    { type: 'tool_call_done', choice: 0, index: 0 },
    { type: 'tool_call_done', choice: 0, index: 1, members: { extra_content: signed, other: 1 } },
    { type: 'tool_call_done', choice: 0, index: 2 },
    { type: 'choice_done', choice: 0, reason: 'stop', matchedStop: null, extraContent: signed },
    { type: 'finished', usage: null },
  ]
  const editor = (from: string, isLate: boolean) => (): TextEditor => ({
    edit: (piece) => {
      const passed = piece.replace(from, '"***"')
      return isLate ? new Promise((resolve) => setImmediate(() => resolve(passed))) : passed
    },
  })
  /** Place of the data: index of the call, or `text`. */
  const places = (events: readonly GenerationEvent[]): (string | number)[] =>
    events.flatMap((event): (string | number)[] => {
      if (!JSON.stringify(event).includes('signed')) return []
      return 'index' in event ? [event.index] : ['text']
    })
  for (const isLate of [false, true]) {
    const given = [STARTED, ...calls('{"a":"secret"}')]
    const run = async (from: string) => (await through(given, editor(from, isLate))).events
    expect((await run('nothing')).filter(({ type }) => type !== 'text')).toEqual(
      expect.arrayContaining(given.filter(({ type }) => type === 'tool_call')),
    )
    expect(places(await run('nothing'))).toEqual([0, 1, 1, 'text'])
    expect(places(await run('"secret"'))).toEqual([1, 1, 'text'])
    expect(places(await run('{}'))).toEqual([0, 'text'])
    expect(places(await run('hello'))).toEqual([0, 1, 1])
    for (const from of ['nothing', '"secret"', '{}', 'hello']) {
      const events = await run(from)
      expect(breachesOf(events)).toEqual([])
      expect(events.flatMap((event) => (event.type === 'tool_call' ? [event.id] : []))).toEqual([
        'a',
        'b',
        'c',
      ])
      expect(JSON.stringify(events)).toContain('"other":1')
    }
  }
})

test('the input of a custom tool loses vendor data only if it is edited', async () => {
  const item = {
    type: 'custom_tool_call',
    call_id: 'c',
    name: 'run',
    input: 'secret',
    extra_content: { a: 'signed' },
  }
  const given: GenerationEvent[] = [
    STARTED,
    { type: 'native_started', choice: 0, number: 0, engine: 'responses', item: { ...item, input: '' } },
    { type: 'native_item', choice: 0, number: 0, engine: 'responses', item },
    ...END,
  ]
  const same = await through(given, () => ({ edit: (piece) => piece }))
  expect(same.events[2]).toEqual(given[2])
  const changed = await through(given, () => ({ edit: (piece) => piece.replace('secret', '***') }))
  expect(JSON.stringify(changed.events)).not.toContain('signed')
})

test.each([false, true])(
  'sources and results of tools of the vendor are edited as wholes; late: %s',
  async (isLate) => {
    const started = { type: 'mcp_call', id: 'secret', name: 'find', output: null }
    const item = { ...started, output: 'a secret', list: [{ text: 'secret', encrypted_content: 'secret' }] }
    const given: GenerationEvent[] = [
      STARTED,
      { type: 'native_started', choice: 0, number: 0, engine: 'responses', item: started },
      { type: 'native_item', choice: 0, number: 0, engine: 'responses', item },
      { type: 'text', choice: 0, delta: 'said' },
      { type: 'annotation', choice: 0, annotation: { type: 'url_citation', title: 'the secret', url: 'u' } },
      ...END,
    ]
    const { events, streams } = await through(given, () => ({
      edit: (piece) => {
        const passed = piece.replace('secret', '***')
        return isLate ? new Promise((resolve) => setImmediate(() => resolve(passed))) : passed
      },
    }))
    const edited = { ...item, output: 'a ***', list: [{ text: '***', encrypted_content: 'secret' }] }
    expect(events).toEqual([
      STARTED,
      { ...given[1], item: edited },
      { ...given[2], item: edited },
      given[3],
      { type: 'annotation', choice: 0, annotation: { type: 'url_citation', title: 'the ***', url: 'u' } },
      { ...END[0], logprobs: null, tokenIds: null },
      END[1],
    ])
    expect(streams.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['tool_output', 'tool_output', 'text', 'citation']),
    )
    const same = await through(given, () => ({ edit: (piece) => piece }))
    expect(same.events).toEqual(given)
  },
)

test('members of a worker’s answer remain behind an edit, and its content, which repeats the text, does not', async () => {
  const native = { engine: 'messages', content: [{ type: 'text', text: 'secret' }], reason: null }
  const { events } = await through(
    [
      { type: 'started', id: null, model: null, created: null },
      { type: 'text', choice: 0, delta: 'secret' },
      {
        type: 'choice_done',
        choice: 0,
        reason: 'stop',
        matchedStop: null,
        native: { ...native, members: { container: { id: 'c' } } },
      },
    ] as GenerationEvent[],
    () => ({ edit: (text) => text.replace('secret', '***') }),
  )
  expect(events.at(-1)).toMatchObject({
    native: { engine: 'messages', content: null, members: { container: { id: 'c' } } },
  })
})
