/** Prefill/decode pairs over gRPC. */
import { describe, expect, test } from 'vitest'
import type { EngineName, GenerateCall } from '../support/scripted-engine.ts'
import { type EngineSpec, eventsOf, openGrpcFleet, shareGrpcFleets, until } from './grpc-fleet.ts'

const CHAT = '/v1/chat/completions'
const ask = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }], max_tokens: 9 }

const openShared = shareGrpcFleets()

/** @param open `openGrpcFleet` for tests that read metrics */
async function openPair(
  runtime: EngineName,
  prefill: EngineSpec = {},
  decode: EngineSpec = {},
  open = openShared,
) {
  const fleet = await open({
    kernel: { retry: { maxAttempts: 1 } },
    engines: [
      { runtime, ...prefill, spec: { worker_type: 'prefill', ...prefill.spec } },
      { runtime, ...decode, spec: { worker_type: 'decode', ...decode.spec } },
    ],
  })
  const [first, second] = fleet.engines
  const text = await fleet.ids('Hello there')
  first.answer([[text[0]]])
  second.answer(text.map((id) => [id]))
  const answer = async (body: object = ask) => {
    const reply = await fleet.post(CHAT, body)
    return { status: reply.status, body: (await reply.json()) as Answer }
  }
  return { ...fleet, prefill: first, decode: second, answer }
}

interface Answer {
  readonly choices: readonly { readonly message: { readonly content: string } }[]
  readonly error?: { readonly code: string; readonly message: string }
}

const contentOf = ({ body }: { body: Answer }) => body.choices[0].message.content
const requestOf = ({ request }: GenerateCall) =>
  request as unknown as {
    requestId: string
    stream: boolean
    disaggregatedParams: { bootstrapHost: string; bootstrapPort: number; bootstrapRoom: number }
    kvBootstrapInfo: { bootstrapHost: string; bootstrapPort: number; bootstrapRoom: bigint }
    kvTransferParamsJson?: string
    kvTransferParams?: { remoteHost: string; remotePort: number }
    samplingParams: {
      maxTokens: number
      minTokens: number
      n: number
      ignoreEos: boolean
      stopTokenIds: number[]
      stop: string[]
    }
  }

describe('pairs with a bootstrap room', () => {
  test('both sglang calls have the same host, port, room and request id; rooms differ and fit 31 bits', async () => {
    const { prefill, decode, answer } = await openPair('sglang')
    const rooms = new Set<number>()
    for (let nth = 1; nth <= 4; nth++) {
      expect(contentOf(await answer())).toBe('Hello there')
      const [one, other] = [requestOf(await prefill.received(nth)), requestOf(await decode.received(nth))]
      expect(one.disaggregatedParams).toEqual(other.disaggregatedParams)
      expect(one.requestId).toBe(other.requestId)
      const { bootstrapHost, bootstrapPort, bootstrapRoom } = one.disaggregatedParams
      expect([bootstrapHost, bootstrapPort]).toEqual(['127.0.0.1', 8998])
      expect(bootstrapRoom >= 0 && bootstrapRoom < 2 ** 31 - 1).toBe(true)
      rooms.add(bootstrapRoom)
    }
    expect(rooms.size).toBe(4)
  })

  test('the bootstrap port of the prefill registration is used', async () => {
    const { decode, answer } = await openPair('sglang', { spec: { bootstrap_port: 9_111 } })
    await answer()
    expect(requestOf(await decode.received()).disaggregatedParams.bootstrapPort).toBe(9_111)
  })

  test('tokenspeed rooms have up to 63 bits without loss of precision', async () => {
    const { prefill, decode, answer } = await openPair('tokenspeed')
    const rooms: bigint[] = []
    for (let nth = 1; nth <= 8; nth++) {
      await answer()
      const [one, other] = [requestOf(await prefill.received(nth)), requestOf(await decode.received(nth))]
      expect(one.kvBootstrapInfo).toEqual(other.kvBootstrapInfo)
      rooms.push(BigInt(one.kvBootstrapInfo.bootstrapRoom))
    }
    expect(rooms.every((room) => room >= 0n && room < 2n ** 63n)).toBe(true)
    expect(rooms.some((room) => room > 2n ** 53n)).toBe(true)
  })

  test('log probabilities of the prompt come from prefill, those of the output from decode', async () => {
    const { prefill, decode, post, ids } = await openPair('sglang')
    const tokens = await ids('Hello there')
    const prefillMayEnd = Promise.withResolvers<void>()
    const ofPrompt = (value: number) => ({
      inputLogprobs: { tokenLogprobs: [{}, { value }], tokenIds: [4, 5], topLogprobs: [] },
    })
    prefill.script = () => [
      { waitFor: prefillMayEnd.promise },
      { complete: { outputIds: [tokens[0]], finishReason: 'length', ...ofPrompt(-0.25) } },
    ]
    decode.script = ({ request }) =>
      decode.steps([tokens], {}, request).map((step) => {
        const outputLogprobs = { tokenLogprobs: tokens.map(() => -0.5), tokenIds: tokens, topLogprobs: [] }
        if ('chunk' in step) return { chunk: { ...step.chunk, outputLogprobs, ...ofPrompt(-9) } }
        if ('complete' in step) return { complete: { ...step.complete, outputLogprobs, ...ofPrompt(-9) } }
        return step
      })
    const body = { model: 'test-model', text: 'hi', return_logprob: true, logprob_start_len: 0 }
    const meta = {
      input_token_logprobs: [
        [null, 4],
        [-0.25, 5],
      ],
      output_token_logprobs: tokens.map((id) => [-0.5, id]),
    }
    const whole = post('/generate', body)
    const call = await decode.received()
    expect(call.request).toMatchObject({ returnLogprob: true, logprobStartLen: 0 })
    prefillMayEnd.resolve()
    expect(await (await whole).json()).toMatchObject([{ text: 'Hello there', meta_info: meta }])
    const frames = eventsOf(await (await post('/generate', { ...body, stream: true })).text())
      .slice(0, -1)
      .map((text) => JSON.parse(text))
    expect(frames[0]).toMatchObject({ text: 'Hello there', meta_info: meta })
    for (const { meta_info: given } of frames)
      expect(given.input_token_logprobs).toEqual(meta.input_token_logprobs)

    const plain = await post('/generate', { ...body, logprob_start_len: undefined })
    expect(((await plain.json()) as { meta_info: object }[])[0].meta_info).not.toHaveProperty(
      'input_token_logprobs',
    )
  })

  test('a prefill failure cancels the decode call and is reported as a prefill error', async () => {
    const { prefill, decode, answer } = await openPair('sglang')
    prefill.script = () => [{ waitFor: decode.received() }, { status: 3, details: 'too long' }]
    decode.script = () => [{ hang: true }]
    const { status, body } = await answer()
    expect([status, body.error?.code]).toEqual([400, 'prefill_worker_failed_to_start'])
    expect(body.error?.message).toContain('too long')
    const call = await decode.received()
    await call.cancelled
    await until(() => decode.aborted.length > 0)
    expect(decode.aborted).toEqual([call.request.requestId])
  })

  test('a decode failure cancels the prefill call', async () => {
    const { prefill, decode, answer } = await openPair('sglang')
    prefill.script = () => [{ hang: true }]
    decode.script = () => [{ waitFor: prefill.received() }, { status: 8, details: 'full' }]
    const { status, body } = await answer()
    expect([status, body.error?.code]).toEqual([429, 'decode_worker_failed_to_start'])
    await (await prefill.received()).cancelled
    await until(() => prefill.aborted.length > 0)
  })

  test('a client disconnect cancels both calls', async () => {
    const { prefill, decode, post } = await openPair('sglang')
    prefill.script = () => [{ hang: true }]
    decode.script = () => [{ hang: true }]
    const controller = new AbortController()
    const reply = post(CHAT, { ...ask, stream: true }, undefined, controller.signal).catch(
      (error: Error) => error.name,
    )
    const calls = [await prefill.received(), await decode.received()]
    controller.abort()
    expect(await reply).toBe('AbortError')
    await Promise.all(calls.map(({ cancelled }) => cancelled))
    await until(() => prefill.aborted.length > 0 && decode.aborted.length > 0)
  })
})

describe('vllm: prefill first, then decode', () => {
  const NIXL = { spec: { labels: { kv_connector: 'NixlConnector' } } }
  const HANDED = '{"remote_block_ids":[1,2],  "remote_engine_id":"e","n":1.0}'

  test('NIXL: prefill gets one token and no stream; its transfer parameters reach decode byte for byte', async () => {
    const { prefill, decode, answer, ids, gateway } = await openPair('vllm', NIXL, {}, openGrpcFleet)
    const [id] = await ids('x')
    let isDecodeAsked = false
    prefill.script = () => {
      isDecodeAsked = decode.calls.length > 0
      return [{ complete: { outputIds: [id], finishReason: 'length', kvTransferParamsJson: HANDED } }]
    }
    expect(contentOf(await answer({ ...ask, min_tokens: 2, stop: ['zz'], stop_token_ids: [5] }))).toBe(
      'Hello there',
    )
    expect(isDecodeAsked).toBe(false)
    const [one, other] = [requestOf(await prefill.received()), requestOf(await decode.received())]
    expect(one).toMatchObject({
      stream: false,
      kvTransferParamsJson: '{"do_remote_decode":true,"do_remote_prefill":false}',
      samplingParams: { maxTokens: 1, minTokens: 0, n: 1, ignoreEos: true, stop: [], stopTokenIds: [] },
    })
    expect(other.kvTransferParamsJson).toBe(HANDED)
    expect(other.samplingParams).toMatchObject({ maxTokens: 9, minTokens: 2, stop: ['zz'], ignoreEos: false })
    expect(other.requestId).toBe(one.requestId)
    const page = await (await fetch(gateway.metricsUrl as string)).text()
    const labels = 'backend_type="pd",model="test-model",runtime="vllm"'
    for (const name of ['prefill_duration', 'kv_transfer_duration', 'ttft'])
      expect(page).toContain(`weir_pd_${name}_seconds_count{${labels}} 1\n`)
    expect(page).toContain('weir_pd_kv_connector_mode_total{mode="nixl"} 1\n')
    expect(page).toContain('weir_pd_kv_transfer_failures_total 0\n')
  })

  test('without transfer parameters decode still runs; for several choices none are passed', async () => {
    const { prefill, decode, answer, ids, gateway } = await openPair('vllm', NIXL, {}, openGrpcFleet)
    expect(contentOf(await answer())).toBe('Hello there')
    expect(requestOf(await decode.received()).kvTransferParamsJson).toBeUndefined()
    const page = await (await fetch(gateway.metricsUrl as string)).text()
    expect(page).toContain('weir_pd_kv_transfer_failures_total 1\n')
    const [id] = await ids('x')
    prefill.script = () => [
      { complete: { outputIds: [id], finishReason: 'length', kvTransferParamsJson: HANDED } },
    ]
    await answer({ ...ask, n: 2 } as never)
    expect(requestOf(await decode.received(2)).kvTransferParamsJson).toBeUndefined()
  })

  test('Mooncake: both calls have one transfer id, and decode has the prefill address', async () => {
    const { prefill, decode, answer } = await openPair('vllm', {
      spec: {
        bootstrap_port: 9_222,
        labels: { kv_connector: 'MooncakeConnector', kv_engine_id: 'engine-7' },
      },
    })
    await answer()
    const params = JSON.parse(requestOf(await prefill.received()).kvTransferParamsJson ?? '')
    expect(params).toEqual({
      do_remote_decode: true,
      do_remote_prefill: false,
      transfer_id: expect.stringMatching(/^xfer-[0-9a-f-]{36}$/),
    })
    expect(JSON.parse(requestOf(await decode.received()).kvTransferParamsJson ?? '')).toEqual({
      do_remote_decode: false,
      do_remote_prefill: true,
      transfer_id: params.transfer_id,
      remote_engine_id: 'engine-7',
      remote_bootstrap_addr: 'http://127.0.0.1:9222',
    })
  })

  test('Mooncake without an engine id: decode gets host and port in separate fields', async () => {
    const { prefill, decode, answer } = await openPair('vllm', {
      spec: { labels: { kv_connector: 'MooncakeConnector' } },
    })
    await answer()
    expect(requestOf(await prefill.received()).kvTransferParamsJson).toBeUndefined()
    expect(requestOf(await decode.received()).kvTransferParams).toEqual({
      remoteHost: '127.0.0.1',
      remotePort: 8998,
    })
  })

  test('a prefill failure: decode is not called', async () => {
    const { prefill, decode, answer } = await openPair('vllm', NIXL)
    prefill.script = () => [{ status: 13, details: 'no memory' }]
    const { status, body } = await answer()
    expect([status, body.error?.code]).toEqual([500, 'prefill_worker_failed_to_start'])
    expect(decode.calls).toEqual([])
  })
})

describe('unsupported pairs', () => {
  test.each(['trtllm', 'mlx'] as const)('a pair of %s is 400', async (runtime) => {
    const { prefill, decode, answer } = await openPair(runtime)
    const { status, body } = await answer()
    expect([status, body.error?.code]).toEqual([400, 'runtime_pd_not_supported'])
    expect([prefill.calls, decode.calls]).toEqual([[], []])
  })

  test('a pair of different runtimes is a 503', async () => {
    const { prefill, decode, answer } = await openPair('sglang', {}, { runtime: 'vllm' })
    const { status, body } = await answer()
    expect([status, body.error?.code]).toEqual([503, 'pd_runtimes_differ'])
    expect([prefill.calls, decode.calls]).toEqual([[], []])
  })
})
