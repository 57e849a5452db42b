/** Runs the engine adapter contract over the gRPC adapter, once per runtime. */
import type { LoadedTokenizer, Logger, OutputParsersService, TokenDecoder } from '#kernel'
import { GrpcEngine, SamplingDefaults } from '../../plugins/workers/grpc/engine/grpc-engine.ts'
import { EnginePrompt, PromptBuilder } from '../../plugins/workers/grpc/engine/prompt.ts'
import { SentRequests } from '../../plugins/workers/grpc/wire/sent-requests.ts'
import * as mlx from '../../proto/gen/mlx-engine.ts'
import * as sglang from '../../proto/gen/sglang-scheduler.ts'
import * as tokenspeed from '../../proto/gen/tokenspeed-scheduler.ts'
import * as trtllm from '../../proto/gen/trtllm-service.ts'
import * as vllm from '../../proto/gen/vllm-engine.ts'
import { workerEntry } from '../support/worker-entry.ts'
import { engineContract, PLAIN_REQUEST } from './engine-contract.ts'

/** Ids are code points. */
const tokenizer = {
  eosIds: [0],
  openDecoder: (): TokenDecoder => ({
    push: (id) => String.fromCodePoint(id),
    end: () => '',
    matchedStop: null,
  }),
} as unknown as LoadedTokenizer
const idsOf = (text: string) => [...text].map((letter) => letter.codePointAt(0) ?? 0)
const log = { warn() {} } as unknown as Logger
const parsers = {} as OutputParsersService

const prepared = new EnginePrompt({
  tokenIds: Uint32Array.from(idsOf('Grüße, "you"')),
  text: 'Grüße, "you"',
  tokenizer,
  output: null,
  request: PLAIN_REQUEST,
  stringStopIds: [],
})

/** A text in two chunks, and the last message of each engine. */
const RUNTIMES = [
  [
    'sglang',
    (ids: readonly number[]) => sglang.encodeGenerateResponse({ chunk: { tokenIds: ids } }),
    (ids: readonly number[], all: readonly number[], isStream: boolean) =>
      sglang.encodeGenerateResponse({ complete: { outputIds: isStream ? ids : all, finishReason: 'stop' } }),
  ],
  [
    'vllm',
    (ids: readonly number[]) => vllm.encodeGenerateResponse({ chunk: { tokenIds: ids } }),
    (ids: readonly number[], all: readonly number[], isStream: boolean) =>
      vllm.encodeGenerateResponse({ complete: { outputIds: isStream ? ids : all, finishReason: 'stop' } }),
  ],
  [
    'trtllm',
    (ids: readonly number[]) => trtllm.encodeGenerateResponse({ chunk: { tokenIds: ids } }),
    (_: readonly number[], all: readonly number[]) =>
      trtllm.encodeGenerateResponse({ complete: { outputTokenIds: all, finishReason: 'stop_word' } }),
  ],
  [
    'tokenspeed',
    (ids: readonly number[]) => tokenspeed.encodeGenerateResponse({ chunk: { tokenIds: ids } }),
    (ids: readonly number[], all: readonly number[], isStream: boolean) =>
      tokenspeed.encodeGenerateResponse({
        complete: { outputIds: isStream ? ids : all, finishReason: 'stop' },
      }),
  ],
  [
    'mlx',
    (ids: readonly number[]) => mlx.encodeGenerateResponse({ chunk: { tokenIds: ids } }),
    (_: readonly number[], all: readonly number[], isStream: boolean) =>
      mlx.encodeGenerateResponse({ complete: { outputIds: isStream ? [] : all, finishReason: 'stop' } }),
  ],
] as const

const [first, second] = ['Grü', 'ße 😀']
const all = idsOf(first + second)

for (const [runtimeType, chunk, complete] of RUNTIMES)
  engineContract(`grpc, ${runtimeType}`, () => ({
    adapter: new GrpcEngine({
      prompts: new PromptBuilder({ find: () => tokenizer } as never, parsers, () => []),
      parsers,
      defaults: new SamplingDefaults(log),
      calls: new SentRequests(),
    }),
    worker: workerEntry({ slot: 0, connectionMode: 'grpc', runtimeType, apis: [] }),
    otherWorker: workerEntry({ slot: 1, connectionMode: 'grpc', runtimeType: 'unspecified', apis: [] }),
    cutsAnywhere: false,
    prepared,
    answers: [
      {
        name: 'text in chunks',
        chunks: [chunk(idsOf(first)), chunk(idsOf(second)), complete(idsOf(second), all, true)],
        text: first + second,
      },
      { name: 'a whole answer', chunks: [complete(idsOf(second), all, false)], text: first + second },
      {
        name: 'what is no message',
        chunks: [chunk(idsOf('x')), Buffer.from([0xff, 0xff, 0xff, 0xff])],
        text: 'x',
        fails: true,
      },
    ],
  }))
