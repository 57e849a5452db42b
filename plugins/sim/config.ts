/** The sim section of the configuration file. */
import { type Static, Type } from '#kernel'

const engineConfig = Type.Object(
  {
    model: Type.Union([Type.Literal('paced'), Type.Literal('batched')], {
      default: 'paced',
      description:
        'paced: every request gets ttftMs and itlMs independent of load. batched: simulates queue, prefill, decode and prefix cache by the settings below; ttftMs and itlMs are ignored.',
    }),
    prefillTokensPerSecond: Type.Number({
      exclusiveMinimum: 0,
      default: 8000,
      description: 'Prompt tokens computed per second.',
    }),
    prefillChunkTokens: Type.Integer({
      minimum: 1,
      default: 2048,
      description: 'Maximum prompt tokens computed between two decode steps.',
    }),
    decodeBaseMs: Type.Number({
      minimum: 0,
      default: 6,
      description: 'Duration of a decode step of an empty batch, milliseconds.',
    }),
    decodePerRunningMs: Type.Number({
      minimum: 0,
      default: 0.35,
      description: 'Time that each request of the batch adds to a decode step, milliseconds.',
    }),
    maxRunning: Type.Integer({
      minimum: 1,
      default: 256,
      description: 'Maximum requests in the batch; further ones wait.',
    }),
    maxWaiting: Type.Integer({
      minimum: 1,
      default: 4096,
      description: 'Maximum waiting requests; further ones get 503.',
    }),
    kvTokens: Type.Integer({
      minimum: 1,
      default: 524_288,
      description: 'Capacity of the KV cache, tokens.',
    }),
    blockTokens: Type.Integer({
      minimum: 1,
      maximum: 1024,
      default: 16,
      description: 'Tokens per block of the KV cache; only full blocks are shared.',
    }),
  },
  { default: {}, additionalProperties: false },
)

export const simConfig = Type.Object(
  {
    listen: Type.Object(
      {
        host: Type.String({ default: '127.0.0.1', description: 'Address to listen on.' }),
        port: Type.Integer({
          minimum: 0,
          maximum: 65_535,
          default: 9001,
          description: 'Port of the engine; 0 selects any free port.',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    count: Type.Integer({
      minimum: 1,
      maximum: 4096,
      default: 1,
      description: 'Number of engines in this process, on consecutive ports from `listen.port` on.',
    }),
    models: Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      default: ['sim-1'],
      description: 'Model ids of the engine; requests without a model use the first one.',
    }),
    ttftMs: Type.Number({
      minimum: 0,
      default: 20,
      description: 'Time to the first token, milliseconds.',
    }),
    itlMs: Type.Number({
      minimum: 0,
      default: 5,
      description: 'Time between tokens, milliseconds. 0: as fast as the client reads.',
    }),
    tokens: Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      default: 64,
      description: 'Length of an answer in tokens, unless the request limits it.',
    }),
    seed: Type.Integer({
      minimum: 0,
      default: 1,
      description: 'Seed of the generated text, which is the same for the same seed, model and prompt.',
    }),
    runtime: Type.Union(
      [Type.Literal('sglang'), Type.Literal('vllm'), Type.Literal('trtllm'), Type.Literal('mlx')],
      {
        default: 'sglang',
        description: 'Simulated engine: decides model owner, routes and metric names.',
      },
    ),
    protocol: Type.Union([Type.Literal('http'), Type.Literal('grpc')], {
      default: 'http',
      description:
        'Protocol of the engine. grpc uses token ids of the built-in sample tokenizer, requires plugin tokenizers, and supports the settings listen, count, models, ttftMs, itlMs, tokens, seed, runtime and role.',
    }),
    responses: Type.Boolean({
      default: false,
      description: 'Serves POST /v1/responses too, and lists it in GET /openapi.json.',
    }),
    role: Type.Union([Type.Literal('regular'), Type.Literal('prefill'), Type.Literal('decode')], {
      default: 'regular',
      description:
        'Role in a prefill/decode pair. prefill: answers are one token long. decode: like regular. Both record the bootstrap room of a request.',
    }),
    engine: engineConfig,
    apiKey: Type.Union([Type.Null(), Type.String({ minLength: 1 })], {
      default: null,
      secret: true,
      description: 'If set, requests must have the header `Authorization: Bearer <key>`.',
    }),
    embeddingDimensions: Type.Integer({
      minimum: 1,
      maximum: 8192,
      default: 64,
      description: 'Default length of embedding vectors.',
    }),
    maxModelLen: Type.Integer({
      minimum: 1,
      default: 32_768,
      description: 'Context length: tokens of prompt and answer. Longer prompts are rejected.',
    }),
    fixedReply: Type.Boolean({
      default: false,
      description:
        'Chat, completions and generate return prepared bytes without parsing the body, for load tests.',
    }),
    record: Type.Boolean({
      default: true,
      description: 'Records the last 1,000 requests for GET /sim/requests.',
    }),
  },
  { additionalProperties: false },
)

export type SimConfig = Static<typeof simConfig>
export type EngineConfig = SimConfig['engine']
export type SimRuntime = SimConfig['runtime']
