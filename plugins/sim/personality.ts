/**
 * How the simulated engines differ in what clients and gateways see of them. Absent members are as OpenAI documents them.
 * `personal-answer.ts` applies those of answers.
 */
import type { SimConfig, SimRuntime } from './config.ts'

/** An error response. */
export interface Refusal {
  readonly status: number
  readonly message: string
}

export interface Personality {
  readonly hasGrpc: boolean
  /** Members of each entry of its model list beside `id` and `object`. */
  readonly listed: (config: SimConfig, createdSec: number) => object
  /** Information routes that it has. */
  readonly routes: ReadonlySet<string>
  /** Inference routes that it lacks. */
  readonly lacks: ReadonlySet<string>
  /** Routes that it rejects. */
  readonly rejects?: ReadonlyMap<string, Refusal>
  /** Body of an error response; text is sent as text. Absent for engines whose answers have no quirks. */
  readonly errorBody?: (refusal: Refusal, code: string) => object | string
  /** It has no `/openapi.json`. */
  readonly lacksOpenApi?: boolean
  /** Its model list needs no key. */
  readonly listsWithoutKey?: boolean
  /** Responses to images, to `max_tokens: 0`, and to models that it does not list. Default: ignored, 400, served. */
  readonly image?: Refusal
  readonly noTokens?: Refusal | 'one_token'
  readonly otherModel?: (model: string) => Refusal
  /** Response to each request after the fault `die`. */
  readonly dead?: Refusal
  /** Prompts longer than the context are computed. */
  readonly ignoresContext?: boolean
  /** All running requests share one context; when it is full, all of them fail. */
  readonly sharesContext?: boolean
  /** `n` is ignored. */
  readonly hasOneChoice?: boolean
  /** A stop string is removed from the text, which goes on; or it stays at the end. */
  readonly stop?: 'removed' | 'kept'
  /** Usage is that of the first choice; in streams, that of each choice apart. */
  readonly countsEachChoice?: boolean
  /** Usage is in the chunk with the finish reason, whether asked for or not. */
  readonly endsWithUsage?: boolean
  /** Streams end without `[DONE]`. */
  readonly lacksDone?: boolean
  /** Sent before the first event of a stream. */
  readonly firstComment?: string
  /** A whole answer begins with the assistant message that it continues. */
  readonly repeatsPrefill?: boolean
  /** Tools do not reach the model. */
  readonly ignoresTools?: boolean
  /** Serves Responses, streamed unless `stream` is false. */
  readonly streamsResponses?: boolean
}

const owned =
  (owner: string): Personality['listed'] =>
  ({ maxModelLen, models: [root] }, created) => ({
    created,
    owned_by: owner,
    root,
    parent: null,
    max_model_len: maxModelLen,
  })

const NATIVE = ['/generate', '/v1/rerank', '/v1/classify']
const INFO = ['/server_info', '/get_server_info', '/model_info', '/get_model_info']
const COMMON = ['/metrics', '/health_generate', '/flush_cache']
const ALL = new Set<string>()

/** As seen of llama.cpp b11549, mlx-lm 0.32.2 and transformers 5.24. */
export const PERSONALITIES: Readonly<Record<SimRuntime, Personality>> = {
  sglang: {
    hasGrpc: true,
    listed: owned('sglang'),
    routes: new Set([...COMMON, ...INFO, '/v1/loads']),
    lacks: ALL,
  },
  vllm: {
    hasGrpc: true,
    listed: owned('vllm'),
    routes: new Set([...COMMON, '/version']),
    lacks: ALL,
    otherModel: (model) => ({ status: 404, message: `the model '${model}' does not exist` }),
  },
  trtllm: {
    hasGrpc: true,
    listed: owned('trtllm'),
    routes: new Set([...COMMON, '/v1/loads']),
    lacks: ALL,
  },
  llamacpp: {
    hasGrpc: false,
    listed: ({ maxModelLen, models: [id] }, created) => ({
      created,
      owned_by: 'llamacpp',
      aliases: [id],
      tags: [],
      meta: { n_ctx: maxModelLen, n_ctx_train: maxModelLen },
    }),
    routes: new Set(['/props', '/slots']),
    lacks: new Set(NATIVE),
    rejects: new Map([
      ['/metrics', notStarted('metrics endpoint', '--metrics')],
      ['/v1/embeddings', notStarted('embeddings', '--embeddings')],
    ]),
    errorBody: ({ status, message }, code) => ({
      error: { code: status, message, type: LLAMA_TYPES.get(code) ?? 'server_error' },
    }),
    lacksOpenApi: true,
    listsWithoutKey: true,
    image: {
      status: 500,
      message: 'image input is not supported - hint: you may need to provide the mmproj',
    },
    noTokens: 'one_token',
    sharesContext: true,
    countsEachChoice: true,
    repeatsPrefill: true,
    ignoresTools: true,
  },
  mlx: {
    hasGrpc: true,
    lacksOpenApi: true,
    listed: (_config, created) => ({ created }),
    routes: new Set(),
    lacks: new Set([...NATIVE, '/v1/embeddings']),
    errorBody: ({ message }) => ({ error: message }),
    image: { status: 404, message: "Only 'text' content type is supported." },
    noTokens: { status: 400, message: 'max_tokens must be at least 1' },
    otherModel: () => ({ status: 404, message: 'Cannot find an appropriate cached snapshot folder.' }),
    dead: { status: 404, message: 'generation thread died' },
    ignoresContext: true,
    hasOneChoice: true,
    stop: 'removed',
    firstComment: ': keepalive 1/1\n\n',
    ignoresTools: true,
  },
  transformers: {
    hasGrpc: false,
    listed: () => ({ created: 0, owned_by: 'local', status: { value: 'loaded' } }),
    routes: new Set(),
    lacks: new Set([...NATIVE, '/v1/embeddings']),
    errorBody: ({ status, message }) => (status === 500 ? message : { detail: message }),
    noTokens: { status: 500, message: 'Internal Server Error' },
    otherModel: (model) => ({ status: 400, message: `Server is pinned to another model than '${model}'.` }),
    ignoresContext: true,
    hasOneChoice: true,
    stop: 'kept',
    endsWithUsage: true,
    lacksDone: true,
    ignoresTools: true,
    streamsResponses: true,
  },
}

function notStarted(what: string, flag: string): Refusal {
  return { status: 501, message: `This server does not support ${what}. Start it with \`${flag}\`` }
}

/** Types of llama.cpp by the codes of this simulation. */
const LLAMA_TYPES: ReadonlyMap<string, string> = new Map([
  ['invalid_api_key', 'authentication_error'],
  ['context_length_exceeded', 'exceed_context_size_error'],
])
