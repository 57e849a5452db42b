/** Messages of gRPC engines: unusual field values, mutated bytes, unusual orders, and any status; one engine per runtime. */
import * as mlx from '../../proto/gen/mlx-engine.ts'
import * as sglang from '../../proto/gen/sglang-scheduler.ts'
import * as tokenspeed from '../../proto/gen/tokenspeed-scheduler.ts'
import * as trtllm from '../../proto/gen/trtllm-service.ts'
import * as vllm from '../../proto/gen/vllm-engine.ts'
import { type EngineName, type Step, startScriptedEngine } from '../support/scripted-engine.ts'
import { type FuzzCase, type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { HttpLane, isInternal } from './http-lane.ts'
import { type Draw, type Json, mutate, pickOf } from './mutate.ts'

const RUNTIMES: readonly EngineName[] = ['sglang', 'vllm', 'trtllm', 'mlx', 'tokenspeed']
const CODECS = { sglang, vllm, trtllm, mlx, tokenspeed }
const ROUTES: readonly (readonly [path: string, body: Json])[] = [
  [
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: 'hi' }], n: 2, logprobs: true, top_logprobs: 2 },
  ],
  [
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: 'hi' }], tools: [{ type: 'function', function: { name: 'f' } }] },
  ],
  ['/v1/completions', { prompt: ['a', 'b'], logprobs: 1, stop: ['x'] }],
  ['/generate', { text: 'a', return_logprob: true }],
  ['/v1/responses', { input: 'hi', store: false }],
  ['/v1/messages', { messages: [{ role: 'user', content: 'hi' }], max_tokens: 9 }],
]
const NUMBERS = [0, 0, 0, 1, 1, 2, 17, 300, 65_535, 2 ** 31, 2 ** 32 - 1]
const REASONS = ['stop', 'stop', 'length', 'tool_calls', 'abort', 'error', '', 'x'.repeat(3_000)]

/** The label of a case names its engine; each lane has its own engines. */
export const grpc: Suite = { lanes: RUNTIMES.length, count: 2_000, start }

async function start(): Promise<Target> {
  const engines = await Promise.all(
    RUNTIMES.map((runtime) => startScriptedEngine({ runtime, model: runtime })),
  )
  const gateway = await startFuzzed({
    plugins: {
      grpc: {},
      parsers: {},
      tokenizers: { load: RUNTIMES.map((name) => ({ name, source: 'weir:sample' })) },
      messages: {},
      responses: {},
    },
    workers: engines.map(({ url }) => ({ url })),
  })
  const lanes = engines.map(() => new HttpLane(gateway.port))
  /** Cases for one engine run one after the other. */
  const busy = engines.map(() => Promise.resolve<unknown>(null))
  const run = async ({ label, parts }: FuzzCase): Promise<Outcome> => {
    const [runtime, path, status, body] = label.split(' ', 4)
    const number = RUNTIMES.indexOf(runtime as EngineName)
    const end: Step[] = status === '0' ? [] : [{ status: Number(status), details: 'x' }]
    engines[number].script = () => [...parts.map((bytes) => ({ bytes })), ...end]
    engines[number].calls.length = 0
    const reply = await lanes[number].send(
      `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n`,
      Buffer.from(body),
    )
    const isBad = ['silent', 'malformed'].includes(reply.ending) || isInternal(reply)
    const fault = isBad ? `${reply.ending}: ${reply.head}${reply.body.slice(-800)}` : undefined
    return { ending: reply.ending === 'whole' ? String(reply.status) : reply.ending, fault }
  }
  return {
    gateway,
    make: makeCase,
    run: (input) => {
      const number = RUNTIMES.findIndex((runtime) => input.label.startsWith(`${runtime} `))
      const outcome = busy[number].then(() => run(input))
      busy[number] = outcome
      return outcome
    },
    close: async () => {
      for (const lane of lanes) lane.close()
      for (const engine of engines) await engine.close()
    },
  }
}

function makeCase(draw: Draw): FuzzCase {
  const runtime = pickOf(RUNTIMES, draw)
  const [path, body] = pickOf(ROUTES, draw)
  const status = draw(4) === 0 ? pickOf([1, 3, 4, 5, 8, 12, 13, 14, 16, 99], draw) : 0
  const label = `${runtime} ${path} ${status} ${JSON.stringify({ ...body, model: runtime, stream: draw(2) === 0 })}`
  const messages = Array.from({ length: draw(6) }, (_, at) =>
    encode(runtime, at === 4 || draw(4) === 0, draw),
  )
  const parts = messages.map((bytes) => (draw(3) === 0 ? mutate(bytes, messages, draw) : bytes))
  return { label, parts: parts.filter((bytes) => bytes.length <= 65_536) }
}

/** One list of fields for all runtimes: encoders ignore unknown fields. */
function encode(runtime: EngineName, isComplete: boolean, draw: Draw): Buffer {
  const { encodeGenerateResponse } = CODECS[runtime] as { encodeGenerateResponse: (fields: object) => Buffer }
  const number = () => pickOf(NUMBERS, draw)
  const ids = Array.from({ length: draw(5) }, () => (draw(5) === 0 ? number() : draw(2_000)))
  const counts = {
    promptTokens: number(),
    completionTokens: number(),
    cachedTokens: number(),
    reasoningTokens: number(),
  }
  const logprobs = {
    tokenLogprobs: ids.map(() => pickOf([-0.5, Number.NaN, Number.NEGATIVE_INFINITY, 3e38], draw)),
    tokenIds: ids,
    topLogprobs: ids.map(() => ({ values: [-1, Number.NaN], tokenIds: [number()] })),
  }
  const fields = {
    ...counts,
    tokenIds: ids,
    outputIds: ids,
    outputTokenIds: ids,
    index: draw(4) === 0 ? number() : draw(2),
    sequenceIndex: draw(4) === 0 ? number() : draw(2),
    ...(draw(3) === 0 && runtime !== 'trtllm' && { outputLogprobs: logprobs }),
    ...(isComplete && { finishReason: pickOf(REASONS, draw), matchedTokenId: number() }),
  }
  return encodeGenerateResponse(isComplete ? { complete: fields } : { chunk: fields })
}
