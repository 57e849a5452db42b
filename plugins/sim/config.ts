/** The simulated engine's section of the configuration file. */
import { type Static, Type } from '#kernel'

const engineConfig = Type.Object(
  {
    model: Type.Union([Type.Literal('paced'), Type.Literal('batched')], {
      default: 'paced',
      description:
        'paced: every request gets ttftMs and itlMs whatever else runs. batched: queue, prefill, decode and prefix cache as engines have them; ttftMs and itlMs do not count, the settings below do.',
    }),
    prefillTokensPerSecond: Type.Number({
      exclusiveMinimum: 0,
      default: 8000,
      description: 'Prompt tokens computed per second.',
    }),
    prefillChunkTokens: Type.Integer({
      minimum: 1,
      default: 2048,
      description: 'Most prompt tokens computed between two decode steps.',
    }),
    decodeBaseMs: Type.Number({
      minimum: 0,
      default: 6,
      description: 'Length of a decode step of an empty batch, milliseconds.',
    }),
    decodePerRunningMs: Type.Number({
      minimum: 0,
      default: 0.35,
      description: 'What each request of the batch adds to a decode step, milliseconds.',
    }),
    maxRunning: Type.Integer({ minimum: 1, default: 256, description: 'Requests in the batch; more wait.' }),
    maxWaiting: Type.Integer({
      minimum: 1,
      default: 4096,
      description: 'Requests that may wait; more are refused with 503.',
    }),
    kvTokens: Type.Integer({
      minimum: 1,
      default: 524_288,
      description: 'Tokens that the key-value cache holds, in use or kept for their content.',
    }),
    blockTokens: Type.Integer({
      minimum: 1,
      maximum: 1024,
      default: 16,
      description: 'Tokens per block of the cache; only full blocks are found again.',
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
          description: 'Port of the engine; 0 takes any free one.',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    count: Type.Integer({
      minimum: 1,
      maximum: 4096,
      default: 1,
      description:
        'Engines in this process, each with a listener of its own on the ports from `listen.port` on.',
    }),
    models: Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      default: ['sim-1'],
      description: 'Model ids that the engine lists; the first one answers requests that name none.',
    }),
    ttftMs: Type.Number({
      minimum: 0,
      default: 20,
      description: 'Milliseconds before the first token. 0: at once.',
    }),
    itlMs: Type.Number({
      minimum: 0,
      default: 5,
      description: 'Milliseconds between tokens. 0: as fast as the client takes them.',
    }),
    tokens: Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      default: 64,
      description: 'Length of an answer in tokens, unless the request asks for fewer.',
    }),
    seed: Type.Integer({
      minimum: 0,
      default: 1,
      description: 'The same seed, model and prompt always give the same text.',
    }),
    runtime: Type.Union(
      [Type.Literal('sglang'), Type.Literal('vllm'), Type.Literal('trtllm'), Type.Literal('mlx')],
      {
        default: 'sglang',
        description: 'Engine that is imitated: owner of models, routes and metric names.',
      },
    ),
    protocol: Type.Union([Type.Literal('http'), Type.Literal('grpc')], {
      default: 'http',
      description:
        'How the engine is reached. grpc: in token ids of the tokenizer that comes with the gateway, with the settings listen, count, models, ttftMs, itlMs, tokens, seed, runtime and role; needs plugin tokenizers.',
    }),
    responses: Type.Boolean({
      default: false,
      description:
        'The engine speaks POST /v1/responses too, and says so in GET /openapi.json, as some engines do.',
    }),
    role: Type.Union([Type.Literal('regular'), Type.Literal('prefill'), Type.Literal('decode')], {
      default: 'regular',
      description:
        'prefill: answers are one token long, as of the first half of a pair. decode: as regular. Either records the bootstrap room of a request.',
    }),
    engine: engineConfig,
    apiKey: Type.Union([Type.Null(), Type.String({ minLength: 1 })], {
      default: null,
      secret: true,
      description: 'When set, requests must carry it as `Authorization: Bearer <key>`.',
    }),
    embeddingDimensions: Type.Integer({
      minimum: 1,
      maximum: 8192,
      default: 64,
      description: 'Length of embedding vectors, unless the request says otherwise.',
    }),
    maxModelLen: Type.Integer({
      minimum: 1,
      default: 32_768,
      description: 'Tokens of prompt and answer together; longer prompts are refused.',
    }),
    fixedReply: Type.Boolean({
      default: false,
      description:
        'Chat, completions and generate answer prepared bytes without parsing the body; for load tests.',
    }),
    record: Type.Boolean({
      default: true,
      description: 'Keep the last 1,000 requests for GET /sim/requests.',
    }),
  },
  { additionalProperties: false },
)

export type SimConfig = Static<typeof simConfig>
export type EngineConfig = SimConfig['engine']
export type SimRuntime = SimConfig['runtime']
