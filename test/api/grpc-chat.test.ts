/** Chat completions over gRPC engines, streamed and non-streamed. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { ENGINE_NAMES } from '../support/scripted-engine.ts'
import { startScriptedWorker } from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'
import { eventsOf, openGrpcFleet, shareGrpcFleets, until, withEveryEngine } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const TEXT = 'Hello there, wörld 😀!'
const openShared = shareGrpcFleets()
const openEngine = withEveryEngine(openShared)

interface Chunk {
  readonly choices: readonly {
    readonly index: number
    readonly delta: { readonly content?: string }
    readonly finish_reason: string | null
    readonly matched_stop?: unknown
    readonly logprobs: { readonly content: readonly Logprob[] } | null
  }[]
  readonly usage?: Record<string, unknown> | null
}
interface Logprob {
  readonly token: string
  readonly logprob: number
  readonly bytes: readonly number[]
  readonly top_logprobs: readonly unknown[]
}

function readStream(body: string) {
  const data = eventsOf(body)
  const chunks = data.slice(0, -1).map((text) => JSON.parse(text) as Chunk)
  const choices = chunks.flatMap((chunk) => chunk.choices)
  const textOf = (index: number) =>
    choices.flatMap((choice) => (choice.index === index ? (choice.delta.content ?? '') : [])).join('')
  const endsOf = (index: number) =>
    choices.filter((choice) => choice.index === index && choice.finish_reason !== null)
  return { data, chunks, choices, textOf, endsOf, usages: chunks.flatMap(({ usage }) => usage ?? []) }
}

const whole = async (reply: Response) =>
  (await reply.json()) as {
    choices: { index: number; message: { content: string }; finish_reason: string; matched_stop?: unknown }[]
    usage: Record<string, unknown>
    error?: { code: string; message: string }
  }

describe.each(ENGINE_NAMES)('%s', (runtime) => {
  test('streamed deltas add up to the text, with one usage chunk if requested', async () => {
    const { engine, post, ids } = await openEngine(runtime)
    const tokens = await ids(TEXT)
    engine.answer(tokens.map((id) => [id]))
    const streamed = await (
      await post(CHAT, { ...ask, stream: true, stream_options: { include_usage: true } })
    ).text()
    const { textOf, endsOf, usages, data, chunks } = readStream(streamed)
    expect([textOf(0), endsOf(0).length, data.at(-1)]).toEqual([TEXT, 1, '[DONE]'])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 7 } })
    expect(usages).toEqual([
      { prompt_tokens: 7, completion_tokens: tokens.length, total_tokens: 7 + tokens.length },
    ])
    const plain = readStream(await (await post(CHAT, { ...ask, stream: true })).text())
    expect(plain.usages).toEqual([])
    const { choices, usage } = await whole(await post(CHAT, ask))
    expect(choices[0].message.content).toBe(TEXT)
    expect(usage).toMatchObject({ completion_tokens: tokens.length })
    expect(engine.aborted).toEqual([])
  })

  test('a character split over several chunks is sent once; a truncated character becomes U+FFFD', async () => {
    const { engine, post, ids } = await openEngine(runtime)
    const tokens = await ids('a😀b')
    expect(tokens).toHaveLength(6)
    engine.answer(tokens.map((id) => [id]))
    const { textOf, choices } = readStream(await (await post(CHAT, { ...ask, stream: true })).text())
    expect(textOf(0)).toBe('a😀b')
    expect(choices.flatMap(({ delta }) => delta.content || [])).toEqual(['a', '😀', 'b'])
    engine.answer(tokens.slice(0, -2).map((id) => [id]))
    const cut = readStream(await (await post(CHAT, { ...ask, stream: true })).text())
    expect([cut.textOf(0), cut.endsOf(0).length, cut.data.at(-1)]).toEqual(['a\ufffd', 1, '[DONE]'])
  })

  test('a complete message without chunks still yields the streamed text', async () => {
    const { engine, post, ids } = await openEngine(runtime)
    const tokens = await ids(TEXT)
    engine.script = ({ request }) =>
      engine.steps([tokens], {}, { ...(request as object), stream: false, streaming: false })
    const { textOf } = readStream(await (await post(CHAT, { ...ask, stream: true })).text())
    expect(textOf(0)).toBe(TEXT)
  })

  test.each([true, false])(
    'a client disconnect before the first token cancels the engine request (stream: %s)',
    async (stream) => {
      const { engine, post } = await openEngine(runtime)
      engine.script = () => [{ hang: true }]
      const controller = new AbortController()
      const asked = post(CHAT, { ...ask, stream }, {}, controller.signal).catch(() => null)
      const { request, cancelled } = await engine.received()
      const leftAt = performance.now()
      controller.abort()
      await asked
      await cancelled
      await until(() => engine.aborted.length > 0)
      expect(engine.aborted).toEqual([(request as { requestId: string }).requestId])
      // The bound allows for a loaded machine; without the cancellation the call would never end.
      expect(performance.now() - leftAt).toBeLessThan(20_000)
    },
  )
})

test('the load of the engine returns to 0 however a request ends', async () => {
  const { engine, post, get, ids } = await openShared({ kernel: { retry: { maxAttempts: 1 } } })
  const load = async () => {
    const { workers } = (await (await get('/workers')).json()) as { workers: { load: number }[] }
    return workers[0].load
  }
  const tokens = (await ids('before STOP HERE NOW after')).map((id) => [id])
  const body = { ...ask, stream: true, stop: ['STOP HERE NOW'] }
  const [first] = tokens
  for (const script of [
    () => engine.steps(tokens.slice(0, 1), {}, { stream: true }),
    () => engine.steps(tokens, {}, { stream: true }),
    () => [{ status: 13, details: 'out of memory' }],
    () => [{ chunk: { tokenIds: first, completionTokens: 1 } }, { status: 13, details: 'later' }],
  ]) {
    engine.script = script
    await textUntilCut(await post(CHAT, body))
    await until(async () => (await load()) === 0)
  }
  engine.script = () => [{ chunk: { tokenIds: first, completionTokens: 1 } }, { hang: true }]
  for (const stream of [true, false]) {
    const controller = new AbortController()
    const count = engine.calls.length
    const asked = post(CHAT, { ...ask, stream }, {}, controller.signal).then(textUntilCut, () => null)
    await engine.received(count + 1)
    expect(await load()).toBe(1)
    controller.abort()
    await asked.catch(() => null)
    await until(async () => (await load()) === 0)
  }
})

test('the completion tokens of vllm are summed over messages', async () => {
  const { engine, post, ids } = await openEngine('vllm')
  const tokens = await ids('one two three four')
  engine.answer([tokens.slice(0, 3), tokens.slice(3)])
  const asked = { ...ask, stream: true, stream_options: { include_usage: true } }
  const { usages } = readStream(await (await post(CHAT, asked)).text())
  expect(usages).toMatchObject([{ completion_tokens: tokens.length }])
})

test('sglang choices with the same index are numbered by order', async () => {
  const { engine, post, ids } = await openShared()
  const [a, b] = [await ids('first'), await ids('second')]
  engine.script = ({ request }) => [...engine.steps([a], {}, request), ...engine.steps([b], {}, request)]
  const { choices, usage } = await whole(await post(CHAT, { ...ask, n: 2 }))
  expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
    [0, 'first'],
    [1, 'second'],
  ])
  expect(usage).toMatchObject({ prompt_tokens: 7, completion_tokens: a.length + b.length })
})

test.each(['sglang', 'vllm', 'trtllm', 'tokenspeed'] as const)(
  '%s streams two choices interleaved, each with its own finish_reason',
  async (runtime) => {
    const { engine, post, ids } = await openEngine(runtime)
    const [a, b] = [await ids('first one'), await ids('second one')]
    engine.script = ({ request }) => {
      const left = engine.steps(
        a.map((id) => [id]),
        {},
        request,
        0,
      )
      const right = engine.steps(
        b.map((id) => [id]),
        { finishReason: 'length' },
        request,
        1,
      )
      return left
        .flatMap((step, at) => [step, ...(right[at] === undefined ? [] : [right[at]])])
        .concat(right.slice(left.length))
    }
    const asked = { ...ask, n: 2, stream: true, stream_options: { include_usage: true } }
    const { textOf, endsOf, usages } = readStream(await (await post(CHAT, asked)).text())
    expect([textOf(0), textOf(1)]).toEqual(['first one', 'second one'])
    expect([endsOf(0), endsOf(1)].map((ends) => ends.map((end) => end.finish_reason))).toEqual([
      ['stop'],
      ['length'],
    ])
    expect(usages).toMatchObject([{ prompt_tokens: 7, completion_tokens: a.length + b.length }])
  },
)

test('3.1: chunks after the stop of one choice are not added to another choice', async () => {
  const { engine, post, ids } = await openShared()
  const [a, b] = [await ids('one STOP HERE NOW more'), await ids('second one')]
  engine.script = ({ request }) => [
    ...engine.steps(
      a.map((id) => [id]),
      {},
      request,
      0,
    ),
    ...engine.steps([b], {}, request, 1),
  ]
  const body = { ...ask, n: 2, stream: true, stop: ['STOP HERE NOW'] }
  const { textOf, endsOf } = readStream(await (await post(CHAT, body)).text())
  expect([textOf(0), textOf(1)]).toEqual(['one ', 'second one'])
  expect([endsOf(0).length, endsOf(1).length]).toEqual([1, 1])
})

describe('stop strings', () => {
  const tokensOf = async (ids: (text: string) => Promise<number[]>, text: string) =>
    (await ids(text)).map((id) => [id])

  test('a stop string split over several chunks is removed, later text is dropped, and the engine request is cancelled', async () => {
    const { engine, post, ids } = await openShared()
    engine.answer(await tokensOf(ids, 'before STOP HERE NOW after and more'))
    const asked = { ...ask, stream: true, stop: ['STOP HERE NOW'] }
    const { textOf, endsOf } = readStream(await (await post(CHAT, asked)).text())
    expect(textOf(0)).toBe('before ')
    expect(endsOf(0)).toMatchObject([{ finish_reason: 'stop', matched_stop: 'STOP HERE NOW' }])
    await until(() => engine.aborted.length === 1)
  })

  test.each([1, 3, 100])(
    'text after a stop string is dropped, in chunks of %i tokens and in later chunks',
    async (size) => {
      const { engine, post, ids } = await openShared()
      const tokens = await ids('before STOP HERE NOW after and more STOP HERE NOW again')
      const chunks: number[][] = []
      for (let at = 0; at < tokens.length; at += size) chunks.push(tokens.slice(at, at + size))
      const more = [...chunks, tokens.slice(0, 1)]
      engine.script = ({ request }) => [
        ...engine.steps(more, {}, request).filter((step) => !('complete' in step)),
        { hang: true },
      ]
      const body = { ...ask, stop: ['STOP HERE NOW'] }
      const { textOf, endsOf, data } = readStream(await (await post(CHAT, { ...body, stream: true })).text())
      expect([textOf(0), endsOf(0).length, data.at(-1)]).toEqual(['before ', 1, '[DONE]'])
      await until(() => engine.aborted.length === 1)
      engine.script = ({ request }) => engine.steps([tokens], {}, request)
      expect((await whole(await post(CHAT, body))).choices[0].message.content).toBe('before ')
    },
  )

  test('mlx: a stop string of several tokens ends the answer, streamed and non-streamed', async () => {
    const { engine, post, ids } = await openEngine('mlx')
    engine.answer(await tokensOf(ids, 'before STOP HERE NOW after'))
    const body = { ...ask, stop: ['STOP HERE NOW'] }
    const { textOf, endsOf } = readStream(await (await post(CHAT, { ...body, stream: true })).text())
    expect([textOf(0), endsOf(0)[0].matched_stop]).toEqual(['before ', 'STOP HERE NOW'])
    const [choice] = (await whole(await post(CHAT, body))).choices
    expect([choice.message.content, choice.finish_reason]).toEqual(['before ', 'stop'])
  })

  test('text that only begins like a stop string is delivered completely', async () => {
    const { engine, post, ids } = await openShared()
    const text = 'STOP HERE STOP HERE NO, STOP HER'
    engine.answer(await tokensOf(ids, text))
    const { textOf } = readStream(
      await (await post(CHAT, { ...ask, stream: true, stop: 'STOP HERE NOW' })).text(),
    )
    expect(textOf(0)).toBe(text)
    expect(engine.aborted).toEqual([])
  })

  test('the stop string that ends first wins; no_stop_trim keeps it in the text', async () => {
    const { engine, post, ids } = await openShared()
    engine.answer(await tokensOf(ids, 'one two three four'))
    for (const stop of [
      ['three four', 'two'],
      // Begins before the other one and would end after it.
      ['one two three', 'two'],
    ]) {
      const body = { ...ask, stop }
      const cut = await whole(await post(CHAT, body))
      expect([cut.choices[0].message.content, cut.choices[0].matched_stop]).toEqual(['one ', 'two'])
      const { textOf, endsOf } = readStream(await (await post(CHAT, { ...body, stream: true })).text())
      expect([textOf(0), endsOf(0)[0].matched_stop]).toEqual(['one ', 'two'])
      const kept = await whole(await post(CHAT, { ...body, no_stop_trim: true }))
      expect(kept.choices[0].message.content).toBe('one two')
      const streamed = await post(CHAT, { ...body, stream: true, no_stop_trim: true })
      expect(readStream(await streamed.text()).textOf(0)).toBe('one two')
    }
  })

  test.each(['sglang', 'mlx'] as const)(
    '%s receives stop token ids for single-token stop strings and no stop strings',
    async (runtime) => {
      const { engine, post, ids } = await openEngine(runtime)
      engine.answer([[5]])
      await post(CHAT, { ...ask, stop: ['a', 'never one token, this'] })
      const { samplingParams } = (await engine.received()).request as unknown as {
        samplingParams: { stop: string[]; stopTokenIds: number[] }
      }
      expect(samplingParams.stop ?? []).toEqual([])
      expect(samplingParams.stopTokenIds).toEqual(await ids('a'))
    },
  )

  test('the end-of-text token is not part of the text; ignore_eos continues after it', async () => {
    const { engine, post, ids } = await openShared()
    const [a, b] = [await ids('one'), await ids(' two')]
    const eos = (await ids('<|im_end|>'))[0]
    const end = [...a, eos, ...b].map((id) => [id])
    engine.answer(end, { matchedTokenId: eos })
    const first = readStream(await (await post(CHAT, { ...ask, stream: true })).text())
    expect(first.textOf(0)).toBe('one')
    const second = readStream(await (await post(CHAT, { ...ask, stream: true, ignore_eos: true })).text())
    expect(second.textOf(0)).toBe('one two')
  })
})

test('finish reasons are mapped; cached and reasoning tokens are reported', async () => {
  const { engine, post, ids } = await openShared()
  const tokens = await ids('text')
  for (const [engineReason, reason] of [
    ['stop', 'stop'],
    ['length', 'length'],
    ['', 'stop'],
  ]) {
    engine.answer([tokens], { finishReason: engineReason })
    expect((await whole(await post(CHAT, ask))).choices[0].finish_reason).toBe(reason)
  }
  engine.answer([tokens], { finishReason: 'abort' })
  expect(await (await post(CHAT, ask)).json()).toMatchObject({ error: { code: 'worker_aborted' } })
  expect(await (await post(CHAT, { ...ask, stream: true })).text()).toContain('"code":"worker_aborted"')
  engine.answer([tokens], { cachedTokens: 5, reasoningTokens: 3 })
  expect((await whole(await post(CHAT, ask))).usage).toMatchObject({
    prompt_tokens_details: { cached_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 3 },
  })
  const trt = await openEngine('trtllm')
  trt.engine.answer([tokens], { finishReason: 'stop_word' })
  expect((await whole(await trt.post(CHAT, ask))).choices[0].finish_reason).toBe('stop')
})

test('log probabilities have text, bytes and alternatives, aligned with the content', async () => {
  const { engine, post, ids } = await openShared()
  const tokens = await ids('Hello <|im_start|>😀!')
  const top = (id: number) => ({ values: [-0.5, -1.5], tokenIds: [id, 9] })
  engine.script = ({ request }) =>
    (request as { stream: boolean }).stream
      ? [
          ...tokens.map((id) => ({
            chunk: {
              tokenIds: [id],
              promptTokens: 3,
              completionTokens: 1,
              outputLogprobs: { tokenLogprobs: [-0.5], tokenIds: [id], topLogprobs: [top(id)] },
            },
          })),
          { complete: { finishReason: 'stop', completionTokens: tokens.length } },
        ]
      : []
  const asked = { ...ask, stream: true, logprobs: true, top_logprobs: 2 }
  const { choices, textOf } = readStream(await (await post(CHAT, asked)).text())
  const given = choices.flatMap(({ logprobs }) => logprobs?.content ?? [])
  expect(textOf(0)).toBe('Hello 😀!')
  expect(given).toHaveLength(tokens.length)
  expect(given.map(({ token }) => token)).toContain('<|im_start|>')
  for (const one of given) {
    expect(one).toMatchObject({ logprob: -0.5, top_logprobs: [{ logprob: -0.5 }, { logprob: -1.5 }] })
    expect(Buffer.from(one.bytes).toString()).toBe(one.token)
    expect(one.top_logprobs[0]).toMatchObject({ token: one.token })
  }
  // The log probabilities of a token are not sent before its text.
  let [seen, logprobText] = ['', '']
  for (const { delta, logprobs } of choices) {
    seen += delta.content ?? ''
    logprobText += (logprobs?.content ?? [])
      .map(({ token }) => (token.startsWith('<|') ? '' : token))
      .join('')
    expect(logprobText.replaceAll('\ufffd', '').length).toBeLessThanOrEqual(seen.length)
  }
})

test('an engine failure after the first token ends the stream with one error and no retry', async () => {
  const { engine, post, ids } = await openShared()
  const [first] = await ids('Hello')
  engine.script = () => [
    { chunk: { tokenIds: [first], promptTokens: 3, completionTokens: 1 } },
    { status: 13, details: 'out of memory' },
  ]
  const { data } = readStream(await textUntilCut(await post(CHAT, { ...ask, stream: true })))
  expect(JSON.parse(data.at(-2) as string)).toMatchObject({ error: { code: 'engine_internal' } })
  expect(data.at(-1)).toBe('[DONE]')
  expect(data.filter((text) => text.includes('"error"'))).toHaveLength(1)
  expect(engine.calls).toHaveLength(1)
})

test.each([
  ['/v1/completions', { model: 'test-model', prompt: 'hi' }],
  ['/generate', { model: 'test-model', text: 'hi' }],
])('an engine failure in a stream of %s ends it with one error', async (path, body) => {
  const { engine, post, ids } = await openShared()
  const [first] = await ids('Hello')
  engine.script = () => [
    { chunk: { tokenIds: [first], promptTokens: 3, completionTokens: 1 } },
    { status: 13, details: 'out of memory' },
  ]
  const data = eventsOf(await textUntilCut(await post(path, { ...body, stream: true })))
  expect(JSON.parse(data.at(-2) as string)).toMatchObject({ error: { code: 'engine_internal' } })
  expect(data.at(-1)).toBe('[DONE]')
  expect(data.filter((text) => text.includes('"error"'))).toHaveLength(1)
})

test.each([
  [1, 400],
  [3, 400],
  [5, 404],
  [7, 403],
  [8, 429],
  [9, 400],
  [10, 409],
  [12, 501],
  [13, 500],
  [14, 503],
  [4, 504],
  [16, 401],
  [2, 500],
  [6, 409],
  [11, 400],
  [15, 500],
])('status %i before the first message is HTTP status %i', async (status, expected) => {
  const { engine, post } = await openShared({ kernel: { retry: { maxAttempts: 1 } } })
  engine.script = () => [{ status, details: 'the reason' }]
  const reply = await post(CHAT, { ...ask, stream: true })
  expect(reply.headers.get('content-type')).toContain('application/json')
  const { error, ...rest } = await whole(reply)
  expect([reply.status, rest]).toEqual([expected, {}])
  expect(error).toMatchObject({ message: 'the reason', code: expect.any(String), type: expect.any(String) })
})

test('an unavailable engine is retried on another with a new request id; a rejected request is not retried', async () => {
  const { engines, post, ids } = await openGrpcFleet({ engines: [{}, {}] })
  const tokens = await ids(TEXT)
  engines[0].script = () => [{ status: 14, details: 'restarting' }]
  engines[1].answer([tokens])
  for (let i = 0; i < 4; i++) expect((await post(CHAT, ask)).status).toBe(200)
  expect(engines[0].calls.length).toBeGreaterThan(0)
  const names = engines.flatMap(({ calls }) =>
    calls.map(({ request }) => (request as { requestId: string }).requestId),
  )
  expect(new Set(names).size).toBe(names.length)
  for (const engine of engines) {
    engine.calls.length = 0
    engine.script = () => [{ status: 3, details: 'no' }]
  }
  expect((await post(CHAT, ask)).status).toBe(400)
  expect(engines[0].calls.length + engines[1].calls.length).toBe(1)
})

test('the trace header reaches the engine', async () => {
  const { engine, post } = await openShared()
  engine.answer([[5]])
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await post(CHAT, ask, { traceparent })
  expect((await engine.received()).metadata.get('traceparent')).toContain('0af7651916cd43dd8448eb211c80319c')
})

test('a message above 4 MiB is read', async () => {
  const { engine, post, ids } = await openShared()
  const [id] = await ids('a')
  engine.answer([new Array(2_000).fill(id)], { matchedStopStr: 'x'.repeat(5_000_000) })
  expect((await whole(await post(CHAT, ask))).choices[0].message.content).toBe('a'.repeat(2_000))
})

describe('before the first token', () => {
  const SILENT = { plugins: { chat: { streamOpensAfterMs: 30 } }, kernel: { http: { heartbeatMs: 100 } } }

  test('a stream opens and sends comments until the first token', async () => {
    const { engine, post, ids } = await openShared(SILENT)
    const answer = Promise.withResolvers<void>()
    const tokens = await ids('late')
    engine.script = ({ request }) => [{ waitFor: answer.promise }, ...engine.steps([tokens], {}, request)]
    const reply = await post(CHAT, { ...ask, stream: true })
    expect(reply.status).toBe(200)
    const reader = (reply.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('\n\n:')) text += (await reader.read()).value
    expect(text).toMatch(/^: waiting for the worker\n\n:/)
    answer.resolve()
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
    const { textOf, data } = readStream(text)
    expect([textOf(0), data.at(-1)]).toEqual(['late', '[DONE]'])
  })

  test('a failure after the stream opened is an error event', async () => {
    const { engine, post } = await openShared(SILENT)
    const failure = Promise.withResolvers<void>()
    engine.script = () => [{ waitFor: failure.promise }, { status: 3, details: 'bad grammar' }]
    const reply = await post(CHAT, { ...ask, stream: true })
    failure.resolve()
    expect(reply.status).toBe(200)
    expect(await textUntilCut(reply)).toContain('bad grammar')
  })

  test('a client disconnect before the stream opens cancels the call', async () => {
    const { engine, post } = await openShared(SILENT)
    engine.script = () => [{ hang: true }]
    const controller = new AbortController()
    const reply = post(CHAT, { ...ask, stream: true }, {}, controller.signal).catch(() => null)
    const call = await engine.received()
    controller.abort()
    await reply
    await call.cancelled
  })
})

test('parts and outputs beside text are rejected in the words of the client', async () => {
  const { post } = await openShared()
  const holo = [{ role: 'user', content: [{ type: 'hologram', hologram: {} }] }]
  for (const [body, param, code, named] of [
    [{ messages: holo }, 'messages', 'multimodal_not_supported', "'hologram'"],
    [{ return_audio: true }, 'return_audio', 'audio_output_not_supported', 'return_audio'],
    [{ modalities: ['text', 'audio'] }, 'modalities', 'unsupported_output_modality', '"audio"'],
  ] as const) {
    const reply = await post(CHAT, { ...ask, ...body })
    expect([reply.status, await reply.json()]).toMatchObject([
      400,
      { error: { code, param, message: expect.stringContaining(named) } },
    ])
  }
})

test('an image goes to a worker over HTTP if the model has one beside the engine', async () => {
  const { get, post } = await openGrpcFleet({ engines: [{ spec: { priority: 60 } }] })
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
  const body = { ...ask, messages: [{ role: 'user', content: [image] }] }
  const refused = await whole(await post(CHAT, body))
  expect(refused.error?.code).toBe('multimodal_not_supported')
  const worker = await startScriptedWorker()
  onTestFinished(() => worker.close())
  await post('/workers', { url: worker.url, models: [{ id: 'test-model' }] })
  await until(async () => {
    const readiness = (await (await get('/readiness')).json()) as { healthy_workers?: number }
    return readiness.healthy_workers === 2
  })
  expect((await post(CHAT, body)).status).toBe(200)
  expect(worker.requestsTo(`POST ${CHAT}`)).toHaveLength(1)
})
