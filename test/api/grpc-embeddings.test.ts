/** Embeddings and classification over gRPC engines. */
import { describe, expect, test } from 'vitest'
import { openGrpcFleet, shareGrpcFleets, until, withEveryEngine } from './grpc-fleet.ts'

const EMBED = '/v1/embeddings'
const CLASSIFY = '/v1/classify'
const model = 'test-model'
const openShared = shareGrpcFleets()
const openEngine = withEveryEngine(openShared)
const oneNumber = { engines: [{ embedding: () => [1] }] }

interface Embedded {
  readonly object: string
  readonly model: string
  readonly data: readonly { readonly index: number; readonly embedding: readonly number[] | string }[]
  readonly usage: Record<string, number>
}
interface Classified {
  readonly data: readonly {
    readonly index: number
    readonly label: string
    readonly probs: readonly number[]
    readonly num_classes: number
  }[]
}
const codeOf = async (reply: Response) => [
  reply.status,
  ((await reply.json()) as { error: { code: string } }).error.code,
]

describe.each(['sglang', 'vllm'] as const)('%s', (runtime) => {
  test('each input has one vector with its index, as numbers or base64; token ids are accepted', async () => {
    const { engine, post, ids } = await openGrpcFleet({
      engines: [{ runtime, embedding: (tokens) => [tokens.length, tokens[0], 0.5] }],
    })
    const texts = Array.from({ length: 40 }, (_, at) => `text number ${at} ${'x '.repeat(at)}`)
    const counts = await Promise.all(texts.map(async (text) => (await ids(text)).length))
    const reply = (await (await post(EMBED, { model, input: texts })).json()) as Embedded
    expect(reply).toMatchObject({ object: 'list', model })
    expect(reply.data.map(({ index }) => index)).toEqual(texts.map((_, at) => at))
    expect(reply.data.map(({ embedding }) => embedding[0])).toEqual(counts)
    const total = counts.reduce((sum, count) => sum + count, 0)
    expect(reply.usage).toMatchObject({ prompt_tokens: total, total_tokens: total })
    expect(engine.embedded.length).toBe(40)

    const asked = { model, input: [[5, 6, 7], [8]], encoding_format: 'base64' }
    const encoded = (await (await post(EMBED, asked)).json()) as Embedded
    const floats = encoded.data.map(({ embedding }) => {
      const bytes = Buffer.from(String(embedding), 'base64')
      return [bytes.readFloatLE(0), bytes.readFloatLE(4), bytes.readFloatLE(8)]
    })
    expect(floats).toEqual([
      [3, 5, 0.5],
      [1, 8, 0.5],
    ])
    const last = await post(EMBED, { model, input: [9, 9], user: 'u', truncate: true })
    expect(last.headers.get('x-weir-warning')).toBe('members_ignored; count=2; names="user truncate"')
    const one = (await last.json()) as Embedded
    expect(one.data.map(({ embedding }) => embedding)).toEqual([[2, 9, 0.5]])
  })
})

test('invalid inputs are rejected before the engine is called', async () => {
  const { engine, post } = await openShared(oneNumber)
  expect(await codeOf(await post(EMBED, { model, input: '' }))).toEqual([400, 'empty_input'])
  expect(await codeOf(await post(EMBED, { model, input: [] }))).toEqual([400, 'empty_input'])
  expect(await codeOf(await post(EMBED, { model, input: ['a', ''] }))).toEqual([400, 'empty_input'])
  expect(await codeOf(await post(EMBED, { model, input: [-1] }))).toEqual([400, 'invalid_input'])
  expect(await codeOf(await post(EMBED, { model, input: [1, 'a'] }))).toEqual([400, 'invalid_input'])
  expect(await codeOf(await post(EMBED, { model, input: 'a', dimensions: 8 }))).toEqual([
    400,
    'embedding_dimensions_unsupported',
  ])
  expect(engine.embedded).toEqual([])
})

test.each(['trtllm', 'mlx', 'tokenspeed'] as const)(
  '%s does not support embeddings: 501',
  async (runtime) => {
    const { post } = await openEngine(runtime)
    expect(await codeOf(await post(EMBED, { model, input: 'a' }))).toEqual([501, 'unsupported_backend'])
    expect(await codeOf(await post(CLASSIFY, { model, input: 'a' }))).toEqual([501, 'unsupported_backend'])
  },
)

test('class probabilities add up to 1 and have the labels of the engine', async () => {
  const { post } = await openGrpcFleet({
    engines: [
      {
        embedding: (tokens) => (tokens[0] === 1 ? [1_000, 1_002, 999] : [0, -1e4]),
        modelInfo: { id2labelJson: '{"0":"bad","1":"good"}' },
      },
    ],
  })
  const { data } = (await (await post(CLASSIFY, { model, input: [1] })).json()) as Classified
  expect(data).toMatchObject([{ index: 0, label: 'good', num_classes: 3 }])
  expect(data[0].probs.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 12)
  expect(data[0].probs[1] / data[0].probs[0]).toBeCloseTo(Math.exp(2), 9)
  const other = (await (await post(CLASSIFY, { model, input: [2] })).json()) as Classified
  expect(other.data).toMatchObject([{ label: 'bad', probs: [1, 0], num_classes: 2 }])
})

test('an empty classification is a 500; unnamed classes get a default label', async () => {
  const { post } = await openGrpcFleet({
    engines: [{ embedding: (tokens) => (tokens[0] === 1 ? [] : [0, 1]) }],
  })
  expect(await codeOf(await post(CLASSIFY, { model, input: [1] }))).toEqual([500, 'classification_empty'])
  const { data } = (await (await post(CLASSIFY, { model, input: [2] })).json()) as Classified
  expect(data[0].label).toBe('LABEL_1')
})

test.each(['/rerank', '/v1/rerank'])('%s is 501 with an error in JSON', async (path) => {
  const { post } = await openShared(oneNumber)
  const reply = await post(path, { model, query: 'q', documents: ['a', 'b'] })
  expect(reply.status).toBe(501)
  expect(((await reply.json()) as { error: { message: string } }).error.message).not.toBe('')
})

test('a client disconnect stops the remaining embedding calls and releases the load', async () => {
  let asked = 0
  const { engine, post, get } = await openGrpcFleet({
    engines: [
      {
        embedding: () => {
          asked++
          return [1]
        },
      },
    ],
  })
  const controller = new AbortController()
  const input = Array.from({ length: 1_500 }, (_, at) => `text ${at}`)
  const reply = post(EMBED, { model, input }, undefined, controller.signal).catch(
    (error: Error) => error.name,
  )
  await until(() => asked > 20)
  controller.abort()
  expect(await reply).toBe('AbortError')
  await until(async () => {
    const loads = (await (await get('/get_loads')).text()) + (await (await get('/workers')).text())
    return !/"load":\s*[1-9]/.test(loads)
  })
  const settled = engine.embedded.length
  expect(settled).toBeLessThan(1_500)
})
