/** Text completions and native generation over gRPC engines. */
import { expect, test } from 'vitest'
import { eventsOf, shareGrpcFleets, until, withEveryEngine } from './grpc-fleet.ts'

const model = 'test-model'
const openShared = shareGrpcFleets()
const openEngine = withEveryEngine(openShared)
const names = (engine: { calls: readonly { request: object }[] }) =>
  engine.calls.map(({ request }) => (request as { requestId: string }).requestId)

async function echoing(count = 1) {
  const fleet = await openShared({ engines: Array.from({ length: count }, () => ({})) })
  const tokens = await fleet.ids(' jumps over')
  for (const engine of fleet.engines) engine.answer(tokens.map((id) => [id]))
  return { ...fleet, tokens }
}

test('three prompts are three calls to one worker; echo and suffix apply to each', async () => {
  const { engines, post, tokens } = await echoing(3)
  const prompt = ['the fox', 'the dog', 'the cat']
  const reply = await post('/v1/completions', { model, prompt, echo: true, suffix: '.' })
  const { choices, usage } = (await reply.json()) as {
    choices: { text: string; index: number }[]
    usage: object
  }
  expect(choices.map(({ text, index }) => [index, text])).toEqual(
    prompt.map((text, index) => [index, `${text} jumps over.`]),
  )
  expect(usage).toMatchObject({ prompt_tokens: 21, completion_tokens: 3 * tokens.length })
  expect(engines.map(({ calls }) => calls.length).sort()).toEqual([0, 0, 3])
  const streamed = eventsOf(
    await (await post('/v1/completions', { model, prompt, stream: true, echo: true })).text(),
  )
  const pieces = streamed
    .slice(0, -1)
    .map((data) => JSON.parse(data).choices[0] as { index: number; text: string })
  for (const [index, text] of prompt.entries())
    expect(pieces.flatMap((piece) => (piece.index === index ? piece.text : [])).join('')).toBe(
      `${text} jumps over`,
    )
})

test('members that neither the gateway nor the engine reads are named', async () => {
  const { post } = await echoing(2)
  const warned = async (path: string, body: object) =>
    (await post(path, { model, ...body })).headers.get('x-weir-warning')
  expect(
    await warned('/v1/completions', { prompt: 'the fox', top_k: 4, use_beam_search: true, rid: 'a' }),
  ).toBe('members_ignored; count=1; names="use_beam_search"')
  const sampling = { max_new_tokens: 4, top_k: 4, spaces: true }
  expect(await warned('/generate', { text: 'the fox', sampling_params: sampling, log_metrics: true })).toBe(
    'members_ignored; count=2; names="sampling_params.spaces log_metrics"',
  )
  expect(await warned('/generate', { text: 'the fox', sampling_params: { top_k: 4 } })).toBeNull()
})

test('prompts of token ids reach the engine unchanged; other lists are 400', async () => {
  const { engine, post } = await echoing()
  const sent = () =>
    engine.calls.map(({ request }) => {
      const { tokenized } = request as unknown as { tokenized: { inputIds: Iterable<number> } }
      return [...tokenized.inputIds]
    })
  for (const stream of [false, true]) {
    const reply = await post('/v1/completions', { model, prompt: [5, 6, 7], stream })
    expect([reply.status, (await reply.text()).includes('error')]).toEqual([200, false])
  }
  const two = await post('/v1/completions', { model, prompt: [[8], [9, 10]] })
  expect(((await two.json()) as { choices: object[] }).choices).toMatchObject([{ index: 0 }, { index: 1 }])
  expect(sent()).toEqual([[5, 6, 7], [5, 6, 7], [8], [9, 10]])
  for (const wrong of [
    { prompt: [-1] },
    { prompt: [[]] },
    { prompt: [[1], 2] },
    { prompt: [1], echo: true },
  ]) {
    const reply = await post('/v1/completions', { model, ...wrong })
    expect([reply.status, ((await reply.json()) as { error: { code: string } }).error.code]).toEqual([
      400,
      'resolve_input_failed',
    ])
  }
  expect(engine.calls.length).toBe(4)
})

test('one failing prompt fails the request and cancels the other calls', async () => {
  const { engine, post } = await echoing()
  engine.script = ({ request }) => {
    const { tokenized } = request as unknown as { tokenized: { originalText: string } }
    if (tokenized.originalText === 'bad') return [{ status: 3, details: 'no' }]
    return [{ chunk: { tokenIds: [], promptTokens: 1 } }, { hang: true }]
  }
  const reply = await post('/v1/completions', { model, prompt: ['a', 'bad', 'c'], stream: true })
  expect(await reply.text()).toContain('engine_invalid_argument')
  await until(() => engine.aborted.length === 2)
})

test('completions have log probabilities, and best_of returns the best choice', async () => {
  const { engine, post, ids } = await echoing()
  const [a, b] = [await ids('good'), await ids('bad')]
  const of = (tokens: number[], value: number) => ({
    outputLogprobs: { tokenLogprobs: tokens.map(() => value), tokenIds: tokens, topLogprobs: [] },
  })
  engine.script = ({ request }) => [
    ...engine.steps([b], of(b, -3), request),
    ...engine.steps([a], of(a, -1), request),
  ]
  const reply = await post('/v1/completions', { model, prompt: 'x', best_of: 2, n: 1, logprobs: 0 })
  const { choices } = (await reply.json()) as {
    choices: { text: string; logprobs: { token_logprobs: number[] } }[]
  }
  expect([choices.length, choices[0].text]).toEqual([1, 'good'])
  expect(choices[0].logprobs.token_logprobs).toEqual(a.map(() => -1))
})

test('generate returns a list, and a stream ends with [DONE]', async () => {
  const { post, tokens } = await echoing()
  const reply = await post('/generate', { model, text: 'the fox' })
  expect(await reply.json()).toMatchObject([
    {
      text: ' jumps over',
      output_ids: tokens,
      meta_info: { finish_reason: { type: 'stop' }, prompt_tokens: 7 },
    },
  ])
  const data = eventsOf(
    await (await post('/generate', { text: 'the fox', stream: true, rid: 'mine' })).text(),
  )
  expect(data.at(-1)).toBe('[DONE]')
  const frames = data.slice(0, -1).map((text) => JSON.parse(text))
  expect(frames.at(-1)).toMatchObject({ text: ' jumps over', index: 0, meta_info: { id: 'mine-0' } })
  expect(frames.flatMap((frame) => frame.output_ids)).toEqual(tokens)
})

test('tokens without text are returned and counted, streamed and non-streamed, for one and two choices', async () => {
  const { engine, post, ids } = await echoing()
  const silent = (await ids('<tool_call>a<|im_start|>')).slice(-1)
  const tokens = [...(await ids(' jumps')), ...silent, ...silent]
  engine.script = ({ request }) => {
    const n = (request as { samplingParams: { n: number } }).samplingParams.n
    return Array.from({ length: n }, (_, index) =>
      engine.steps(
        tokens.map((id) => [id]),
        { finishReason: 'length' },
        request,
        index,
      ),
    ).flat()
  }
  for (const n of [1, 2]) {
    const body = { model, text: 'the fox', sampling_params: { n } }
    const whole = (await (await post('/generate', body)).json()) as {
      output_ids: number[]
      meta_info: { completion_tokens: number }
    }[]
    expect(whole.map(({ output_ids, meta_info }) => [output_ids, meta_info.completion_tokens])).toEqual(
      new Array(n).fill([tokens, tokens.length]),
    )
    const data = eventsOf(await (await post('/generate', { ...body, stream: true })).text())
    const frames = data.slice(0, -1).map((text) => JSON.parse(text))
    for (let index = 0; index < n; index++) {
      const own = frames.filter((frame) => frame.index === index)
      expect(own.flatMap((frame) => frame.output_ids)).toEqual(tokens)
      expect(own.at(-1).meta_info.completion_tokens).toBe(tokens.length)
    }
  }
  const completion = { model, prompt: 'x', return_token_ids: true, stream: true }
  const pieces = eventsOf(await (await post('/v1/completions', completion)).text()).slice(0, -1)
  expect(pieces.flatMap((data) => JSON.parse(data).choices[0].token_ids ?? [])).toEqual(tokens)
})

test('generate rejects negative ids, nested ids and a missing prompt', async () => {
  const { engine, post } = await echoing()
  for (const body of [{ input_ids: [-1] }, { input_ids: [[1], [2]] }, {}])
    expect((await post('/generate', { model, ...body })).status).toBe(400)
  expect(engine.calls).toHaveLength(0)
  await post('/generate', { model, input_ids: [5, 6], rid: 'mine' })
  expect(names(engine)).toEqual(['mine'])
})

test('generate rejects parameters that no gRPC engine supports, by name', async () => {
  const { engine, post } = await echoing()
  for (const [name, value] of [
    ['lora_path', 'adapters/a'],
    ['session_params', { id: 's' }],
    ['return_hidden_states', true],
    ['modalities', ['image']],
  ] as const) {
    const reply = await post('/generate', { model, text: 'x', [name]: value })
    const { error } = (await reply.json()) as { error: { message: string; param: string } }
    expect([reply.status, error.param, error.message]).toEqual([400, name, expect.stringContaining(name)])
  }
  expect(engine.calls).toHaveLength(0)
  const nothing = {
    token_ids_logprob: [],
    lora_path: null,
    session_params: {},
    return_hidden_states: false,
    modalities: ['text'],
  }
  expect((await post('/generate', { model, text: 'x', ...nothing })).status).toBe(200)
})

test('log probabilities of alternatives and of requested ids are returned, streamed and non-streamed', async () => {
  const { engine, post, tokens } = await echoing()
  const rowOf = (id: number) => ({ values: [-id, -2 * id], tokenIds: [id, id + 1] })
  const of = (ids: readonly number[]) => ({
    tokenLogprobs: ids.map(() => -0.5),
    tokenIds: ids,
    topLogprobs: ids.map((id) => ({ values: [-0.5, -1], tokenIds: [id, 9] })),
    tokenIdsLogprobs: ids.map(rowOf),
  })
  engine.script = ({ request }) =>
    engine
      .steps(
        tokens.map((id) => [id]),
        { outputLogprobs: of(tokens) },
        request,
      )
      .map((step) => {
        const { chunk } = step as { chunk?: { tokenIds: number[] } }
        return chunk === undefined ? step : { chunk: { ...chunk, outputLogprobs: of(chunk.tokenIds) } }
      })
  const asked = { return_logprob: true, top_logprobs_num: 1, token_ids_logprob: [7, 8] }
  const body = { model, text: 'the fox', ...asked }
  const expected = {
    output_token_logprobs: tokens.map((id) => [-0.5, id]),
    output_top_logprobs: tokens.map((id) => [[-0.5, id]]),
    output_token_ids_logprobs: tokens.map((id) => [
      [-id, id],
      [-2 * id, id + 1],
    ]),
  }
  const [{ meta_info: whole }] = (await (await post('/generate', body)).json()) as { meta_info: object }[]
  expect(whole).toMatchObject(expected)
  expect((await engine.received()).request).toMatchObject({ tokenIdsLogprob: [7, 8], topLogprobsNum: 1 })
  const data = eventsOf(await (await post('/generate', { ...body, stream: true })).text()).slice(0, -2)
  const metas = data.map((text) => JSON.parse(text).meta_info as Record<string, unknown[]>)
  for (const [name, rows] of Object.entries(expected))
    expect(metas.flatMap((meta) => meta[name] ?? [])).toEqual(rows)
  engine.calls.length = 0
  const unasked = { model, text: 'the fox', token_ids_logprob: [7] }
  const [{ meta_info: bare }] = (await (await post('/generate', unasked)).json()) as { meta_info: object }[]
  expect(Object.keys(bare).filter((name) => name.includes('logprob'))).toEqual([])
})

test.each(['vllm', 'trtllm', 'mlx', 'tokenspeed'] as const)(
  'token_ids_logprob is rejected for %s, which does not support it',
  async (runtime) => {
    const { engine, post } = await openEngine(runtime)
    const reply = await post('/generate', { model, text: 'x', return_logprob: true, token_ids_logprob: [7] })
    expect(await reply.json()).toMatchObject({
      error: { code: 'engine_lacks_parameter', param: 'token_ids_logprob' },
    })
    expect([reply.status, engine.calls.length]).toEqual([400, 0])
  },
)

test('log probabilities of the prompt are returned if requested', async () => {
  const { engine, post, tokens } = await echoing()
  const inputLogprobs = { tokenLogprobs: [{}, { value: -0.5 }], tokenIds: [4, 5], topLogprobs: [] }
  engine.script = ({ request }) => engine.steps([tokens], { inputLogprobs }, request)
  const body = { model, text: 'the fox', return_logprob: true, logprob_start_len: 0 }
  const [reply] = (await (await post('/generate', body)).json()) as { meta_info: Record<string, unknown> }[]
  expect(reply.meta_info.input_token_logprobs).toEqual([
    [null, 4],
    [-0.5, 5],
  ])
  expect((await engine.received()).request).toMatchObject({ logprobStartLen: 0 })
})
