/** Chunks of chat workers as generation events: every kind of delta, quirks of engines, any split of the bytes. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EngineAttempt, GatewayError, GenerationEvent } from '#kernel'
import { jsonAnswerReader } from '#shared'
import { runs } from '../../../../test/support/thorough.ts'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { ChatAnswer } from './chat-engine.ts'

const attempt = {
  model: 'm',
  quirks: {},
  worker: workerEntry({ slot: 0 }),
  request: { sampling: {}, prompt: { kind: 'chat' }, choices: 2 },
} as EngineAttempt

function sink() {
  const events: GenerationEvent[] = []
  const failures: GatewayError[] = []
  const out = {
    events,
    failures,
    isStopped: false,
    emit: (event: GenerationEvent) => void events.push(event),
    fail: (error: GatewayError) => void failures.push(error),
    stop() {
      out.isStopped = true
    },
    defer: (next: () => void) => next(),
  }
  return out
}

function readStream(bytes: Buffer, cuts: readonly number[], of = attempt) {
  const out = sink()
  const reader = jsonAnswerReader(new ChatAnswer(of, out), out, 1 << 20)
  reader.onStart(['content-type', 'text/event-stream'])
  let from = 0
  for (const cut of [...new Set(cuts)].sort((a, b) => a - b).concat(bytes.length)) {
    if (cut > from) reader.onData(Buffer.from(bytes.subarray(from, cut)))
    from = Math.max(from, cut)
  }
  reader.onEnd()
  return out
}

const sse = (...chunks: readonly unknown[]) =>
  Buffer.from(
    chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join(''),
  )
const chunk = (delta: unknown, more: Record<string, unknown> = {}) => ({
  id: 'c1',
  created: 7,
  model: 'real-m',
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
})
const withoutStart = (events: readonly GenerationEvent[]) => events.filter(({ type }) => type !== 'started')
const textOf = (events: readonly GenerationEvent[]) =>
  events.map((event) => (event.type === 'text' ? event.delta : '')).join('')

test('reasoning, text, tool calls in pieces and usage become events in order', () => {
  const { events, failures } = readStream(
    sse(
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'hm' }),
      chunk({ content: 'Hél' }),
      chunk({ content: 'lo' }),
      chunk({
        tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }],
      }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"x"' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
      chunk({}, { finish_reason: 'tool_calls' }),
      {
        id: 'c1',
        choices: [],
        usage: { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } },
      },
      '[DONE]',
    ),
    [],
  )
  expect(failures).toEqual([])
  expect(events[0]).toMatchObject({ type: 'started', id: 'c1', model: 'real-m', createdAtSec: 7 })
  expect(withoutStart(events)).toMatchObject([
    { type: 'reasoning', choice: 0, delta: 'hm' },
    { type: 'text', choice: 0, delta: 'Hél' },
    { type: 'text', choice: 0, delta: 'lo' },
    { type: 'tool_call', index: 0, id: 'a', name: 'f' },
    { type: 'tool_arguments', index: 0, delta: '{"x"' },
    { type: 'tool_arguments', index: 0, delta: ':1}' },
    { type: 'tool_call_done', index: 0 },
    { type: 'choice_done', choice: 0, reason: 'tool_calls', matchedStop: null },
    { type: 'finished', usage: { inputTokens: 5, outputTokens: 3, cachedTokens: 2, reasoningTokens: 0 } },
  ])
})

describe('quirks of engines', () => {
  const calls = (events: readonly GenerationEvent[]) =>
    events.flatMap((event) => (event.type === 'tool_call' ? [[event.index, event.id, event.name]] : []))
  const argumentsOf = (events: readonly GenerationEvent[], index: number) =>
    events
      .map((event) => (event.type === 'tool_arguments' && event.index === index ? event.delta : ''))
      .join('')

  test('a new id at the same index is a new call', () => {
    const { events } = readStream(
      sse(
        chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] }),
        chunk({ tool_calls: [{ index: 0, id: 'b', function: { name: 'g', arguments: '[]' } }] }),
        chunk({}, { finish_reason: 'stop' }),
        '[DONE]',
      ),
      [],
    )
    expect(calls(events)).toEqual([
      [0, 'a', 'f'],
      [1, 'b', 'g'],
    ])
    expect(events.find(({ type }) => type === 'choice_done')).toMatchObject({ reason: 'tool_calls' })
  })

  test.each([
    ['tool_calls', true],
    ['stop', true],
    ['length', undefined],
  ])('a call with truncated arguments ends with length, not %s', (given, hasBrokenCalls) => {
    const { events } = readStream(
      sse(
        chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":"y' } }] }),
        chunk({ tool_calls: [{ index: 1, id: 'b', function: { name: 'g', arguments: '{}' } }] }),
        chunk({}, { finish_reason: given }),
        '[DONE]',
      ),
      [],
    )
    expect(events.filter(({ type }) => type === 'tool_call_done')).toMatchObject([{ index: 1 }])
    const end = events.find((event) => event.type === 'choice_done')
    expect([end?.reason, end?.hasBrokenCalls]).toEqual(['length', hasBrokenCalls])
  })

  test('text, reasoning and calls behind a finish_reason are kept, and the last reason counts', () => {
    const { events } = readStream(
      sse(
        chunk({ content: 'a' }, { finish_reason: 'stop', stop_reason: 'x' }),
        chunk({ reasoning_content: '', reasoning: 'hm' }),
        chunk({ content: 'b' }),
        chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] }),
        chunk({}, { finish_reason: 'length' }),
        '[DONE]',
      ),
      [],
    )
    expect(withoutStart(events)).toMatchObject([
      { type: 'text', delta: 'a' },
      { type: 'reasoning', delta: 'hm' },
      { type: 'text', delta: 'b' },
      { type: 'tool_call' },
      { type: 'tool_arguments' },
      { type: 'tool_call_done' },
      { type: 'choice_done', reason: 'length', matchedStop: null },
      { type: 'finished' },
    ])
  })

  test.each([
    ['parts of texts', { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }],
    ['a text', { type: 'thinking', thinking: 'hm' }],
    ['a part of reasoning', { type: 'reasoning', text: 'hm' }],
  ])('reasoning in list content: %s', (_form, part) => {
    const content = [part, { type: 'text', text: 'hi' }, { type: 'refusal', refusal: 'no' }]
    const { events } = readStream(sse(chunk({ content }, { finish_reason: 'stop' }), '[DONE]'), [])
    expect(withoutStart(events).slice(0, 3)).toMatchObject([
      { type: 'reasoning', delta: 'hm' },
      { type: 'text', delta: 'hi' },
      { type: 'refusal', delta: 'no' },
    ])
  })

  test('a missing id is generated once, arguments before the name are held back, repeated arguments are dropped', () => {
    const { events } = readStream(
      sse(
        chunk({ tool_calls: [{ index: 3, function: { arguments: '{"a":' } }] }),
        chunk({ tool_calls: [{ index: 3, function: { name: 'f', arguments: '1}' } }] }),
        chunk({ tool_calls: [{ index: 3, function: { arguments: '{"a":1}' } }] }),
        chunk({}, { finish_reason: 'tool_calls' }),
        '[DONE]',
      ),
      [],
    )
    const [[index, id, name]] = calls(events)
    expect([index, name]).toEqual([0, 'f'])
    expect(id).toMatch(/^call_[0-9a-f]{24}$/)
    expect(argumentsOf(events, 0)).toBe('{"a":1}')
  })

  test.each([
    ['an id that arrives after arguments', undefined, 'call_9'],
    ['an id that changes with each chunk', 'call_8', 'call_9'],
  ])('%s belongs to the current call', (_habit, first, second) => {
    const { events } = readStream(
      sse(
        chunk({ tool_calls: [{ index: 0, id: first, function: { name: 'f', arguments: '{"a"' } }] }),
        chunk({ tool_calls: [{ index: 0, id: second, function: { arguments: ':[1' } }] }),
        chunk({ tool_calls: [{ index: 0, id: `${second}9`, function: { name: '', arguments: ']}' } }] }),
        chunk({}, { finish_reason: 'tool_calls' }),
        '[DONE]',
      ),
      [],
    )
    expect(calls(events)).toEqual([[0, first ?? expect.stringMatching(/^call_[0-9a-f]{24}$/), 'f']])
    expect(argumentsOf(events, 0)).toBe('{"a":[1]}')
  })

  test('object arguments and the older function_call become tool calls', () => {
    const { events } = readStream(
      sse(
        chunk({ function_call: { name: 'f', arguments: { a: 1 } } }),
        chunk({}, { finish_reason: 'function_call' }),
        '[DONE]',
      ),
      [],
    )
    expect(calls(events)).toMatchObject([[0, expect.any(String), 'f']])
    expect(argumentsOf(events, 0)).toBe('{"a":1}')
  })

  test('images are output items, and those at a URL are text', () => {
    const images = ['data:image/png;base64,QUJD', 'https://example.com/a.png'].map((url) => ({
      image_url: { url },
    }))
    const content = [{ type: 'image_url', image_url: { url: 'data:image/webp;base64,REVG' } }]
    const { events } = readStream(
      sse(chunk({ content: '', images }), chunk({ content }, { finish_reason: 'stop' }), '[DONE]'),
      [],
    )
    const item = { type: 'image_generation_call', status: 'completed' }
    expect(withoutStart(events).slice(0, -2)).toMatchObject([
      { type: 'native_started', number: 0, item: { status: 'in_progress' } },
      { type: 'native_item', number: 0, item: { ...item, output_format: 'png', result: 'QUJD' } },
      { type: 'text', delta: '![image](https://example.com/a.png)' },
      { type: 'native_started', number: 1 },
      { type: 'native_item', number: 1, item: { ...item, output_format: 'webp', result: 'REVG' } },
    ])
  })

  test('a matched stop is read from either name', () => {
    for (const key of ['matched_stop', 'stop_reason']) {
      const { events } = readStream(
        sse(chunk({ content: 'x' }), chunk({}, { finish_reason: 'stop', [key]: '###' }), '[DONE]'),
        [],
      )
      expect(events.find(({ type }) => type === 'choice_done')).toMatchObject({
        reason: 'stop',
        matchedStop: '###',
      })
    }
  })
})

test("an error inside the stream fails it with the worker's message", () => {
  const { failures } = readStream(sse(chunk({ content: 'x' }), { error: { message: 'out of memory' } }), [])
  expect(failures.map(({ code, message }) => [code, message])).toEqual([
    ['worker_stream_failed', "the worker's response failed: out of memory"],
  ])
})

test('[DONE] without a finish_reason is a failure', () => {
  const unfinished = [
    sse(chunk({ content: 'x' }), '[DONE]'),
    sse(chunk({ content: 'x' }, { finish_reason: '' }), '[DONE]'),
    sse({ choices: [] }, '[DONE]'),
    sse('[DONE]'),
  ]
  for (const bytes of unfinished) {
    const { events, failures } = readStream(bytes, [])
    expect(events.map(({ type }) => type)).not.toContain('finished')
    expect(failures.map(({ code }) => code)).toEqual(['worker_stream_unfinished'])
  }
})

test('a stream without finish_reason is not finished; one with finish_reason is, without [DONE]', () => {
  expect(readStream(sse(chunk({ content: 'x' })), []).events.at(-1)?.type).toBe('text')
  expect(readStream(sse(chunk({ content: 'x' }, { finish_reason: 'stop' })), []).events.at(-1)?.type).toBe(
    'finished',
  )
})

test('choices that were not requested are ignored, also where they have not ended', () => {
  const at = (index: unknown) => ({ choices: [{ index, delta: { content: 'x' } }] })
  const { events, failures } = readStream(
    sse(at(2), at(-1), at(0.5), chunk({ content: 'a' }, { finish_reason: 'stop' }), at(2), '[DONE]'),
    [],
  )
  expect([textOf(events), events.at(-1)?.type, failures]).toEqual(['a', 'finished', []])
})

test('keys from a worker never reach a property of a plain object', () => {
  const { events } = readStream(
    sse(
      {
        choices: [
          { index: '__proto__', delta: { content: 'x', tool_calls: [{ index: 'constructor', id: 1 }] } },
        ],
      },
      '[DONE]',
    ),
    [],
  )
  expect(textOf(events)).toBe('x')
  expect(({} as Record<string, unknown>).content).toBeUndefined()
})

test('events do not depend on the chunks and their split', () => {
  const delta = fc.oneof(
    fc.record({ content: fc.string({ unit: 'grapheme', maxLength: 8 }) }),
    fc.record({ reasoning_content: fc.string({ unit: 'binary', maxLength: 8 }) }),
    fc.record({ refusal: fc.string({ maxLength: 4 }) }),
    fc.record({
      tool_calls: fc.array(
        fc.record(
          {
            index: fc.nat({ max: 2 }),
            id: fc.constantFrom('a', 'b', ''),
            function: fc.record({
              name: fc.constantFrom('f', 'g', ''),
              arguments: fc.string({ maxLength: 6 }),
            }),
          },
          { requiredKeys: ['index'] },
        ),
        { maxLength: 2 },
      ),
    }),
  )
  const ending = fc.constantFrom('stop', 'length', 'tool_calls', null)
  fc.assert(
    fc.property(
      fc.array(delta, { maxLength: 12 }),
      ending,
      fc.array(fc.nat({ max: 3_000 })),
      (deltas, reason, cuts) => {
        const bytes = sse(...deltas.map((one) => chunk(one)), chunk({}, { finish_reason: reason }), '[DONE]')
        const fixIds = (events: readonly GenerationEvent[]) =>
          JSON.stringify(events)
            .replaceAll(/call_[0-9a-f]{24}/g, 'call')
            .replaceAll(/"createdAtSec":\d+/g, '')
        const whole = readStream(bytes, [])
        const cut = readStream(bytes, cuts)
        expect(fixIds(cut.events)).toBe(fixIds(whole.events))
        expect(whole.events.at(-1)?.type === 'finished').toBe(reason !== null)
        expect(whole.failures).toHaveLength(reason === null ? 1 : 0)
        const text = deltas.map((one) => ('content' in one ? one.content : '')).join('')
        expect(textOf(whole.events)).toBe(text)
      },
    ),
    { numRuns: runs(300) },
  )
})

test('a non-streamed response gives the same content as a stream', () => {
  const out = sink()
  const reader = jsonAnswerReader(new ChatAnswer(attempt, out), out, 1 << 20)
  reader.onStart([])
  const body = {
    id: 'c1',
    created: 7,
    model: 'real-m',
    choices: [
      {
        index: 0,
        message: {
          content: 'hi',
          reasoning_content: 'hm',
          tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 2 },
  }
  for (const byte of Buffer.from(JSON.stringify(body))) reader.onData(Buffer.from([byte]))
  reader.onEnd()
  expect(out.events.map(({ type }) => type)).toEqual([
    'started',
    'reasoning',
    'text',
    'tool_call',
    'tool_arguments',
    'tool_call_done',
    'choice_done',
    'finished',
  ])
})

describe("stop sequences beyond the vendor's limit", () => {
  const stopping = (stop: readonly string[], provider = 'openai', kind = 'chat') =>
    ({
      model: 'm',
      quirks: {},
      worker: workerEntry({ slot: 0, provider }),
      request: { sampling: { stop }, prompt: { kind }, choices: 1 },
    }) as unknown as EngineAttempt
  const FOUR = ['1', '2', '3', '4']
  const endOf = (events: readonly GenerationEvent[]) =>
    events.flatMap((event) => (event.type === 'choice_done' ? [[event.reason, event.matchedStop]] : []))

  test('end the text in the gateway for any split, and cancel the worker request', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀'), maxLength: 12 })
    const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '😀'), minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 3,
    })
    const places = fc.array(fc.nat(2_000), { maxLength: 8 })
    fc.assert(
      fc.property(fc.array(text, { maxLength: 5 }), stops, places, (parts, wanted, cuts) => {
        const bytes = sse(
          ...parts.map((content) => chunk({ content })),
          chunk({}, { finish_reason: 'stop' }),
          '[DONE]',
        )
        const { events, failures, isStopped } = readStream(bytes, cuts, stopping([...FOUR, ...wanted]))
        const all = parts.join('')
        const ends = wanted
          .map((stop) => all.indexOf(stop) + stop.length)
          .filter((end, at) => end >= wanted[at].length)
        const end = Math.min(...ends, Number.POSITIVE_INFINITY)
        const [stop] = wanted
          .filter((one) => all.indexOf(one) + one.length === end && all.includes(one))
          .sort((a, b) => b.length - a.length)
        expect(textOf(events)).toBe(stop === undefined ? all : all.slice(0, end - stop.length))
        expect([endOf(events), failures, isStopped]).toEqual([
          [['stop', stop ?? null]],
          [],
          stop !== undefined,
        ])
        expect(events.at(-1)?.type).toBe('finished')
      }),
    )
  })

  test('hold back no text that is followed by other content', () => {
    const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] }
    const { events } = readStream(
      sse(
        chunk({ content: 'x EN' }),
        chunk({ reasoning_content: 'hm' }),
        chunk({ content: 'D, EN' }),
        chunk(call),
        chunk({}, { finish_reason: 'tool_calls' }),
        '[DONE]',
      ),
      [],
      stopping([...FOUR, 'END']),
    )
    expect(withoutStart(events).map((event) => ('delta' in event ? event.delta : event.type))).toEqual([
      'x ',
      'EN',
      'hm',
      'D, ',
      'EN',
      'tool_call',
      '{}',
      'tool_call_done',
      'choice_done',
      'finished',
    ])
    expect(endOf(events)).toEqual([['tool_calls', null]])
  })

  test('apply to non-streamed responses, and only for providers with a limit', () => {
    const whole = (provider: string, kind?: string) => {
      const out = sink()
      const answer = { choices: [{ index: 0, message: { content: 'one END two' }, finish_reason: 'length' }] }
      new ChatAnswer(stopping([...FOUR, 'END'], provider, kind), out).addWhole(JSON.stringify(answer))
      return [textOf(out.events), endOf(out.events)]
    }
    expect(whole('openai')).toEqual(['one ', [['stop', 'END']]])
    expect(whole('other')).toEqual(['one END two', [['length', null]]])
    expect(whole('openai', 'text')).toEqual(['one END two', [['length', null]]])
  })
})

test.each([{ choices: null }, { choices: [] }, { choices: [null, 1] }, { usage: { prompt_tokens: 1 } }, {}])(
  'an answer without a choice is not an empty answer: %j',
  (answer) => {
    const out = sink()
    const read = () => new ChatAnswer(attempt, out).addWhole(JSON.stringify(answer))
    expect(read).toThrow('the answer holds no choices')
    expect(out.events).toEqual([])
  },
)

test('a chunk with error null is not an error', () => {
  const { events, failures } = readStream(
    sse({ ...chunk({ content: 'hi' }), error: null }, chunk({}, { finish_reason: 'stop' }), '[DONE]'),
    [],
  )
  expect([failures, textOf(events), events.at(-1)?.type]).toEqual([[], 'hi', 'finished'])
})
