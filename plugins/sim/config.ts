/** The sim section of the configuration file. */
import { integer, number, type Static, Type } from '#kernel'

const engineConfig = Type.Object(
  {
    model: Type.Union([Type.Literal('paced'), Type.Literal('batched')], {
      default: 'paced',
      description:
        'paced: every request gets ttftMs and itlMs independent of load. batched: simulates queue, prefill, decode and prefix cache by the other settings of `engine`; ttftMs and itlMs are ignored.',
    }),
    prefillTokensPerSecond: number({ default: 8000, above: 0 }, 'Prompt tokens computed per second.'),
    prefillChunkTokens: integer(
      { default: 2048, min: 1 },
      'Maximum prompt tokens computed between two decode steps.',
    ),
    decodeBaseMs: number(
      { default: 6, min: 0 },
      'Duration of a decode step of an empty batch, milliseconds.',
    ),
    decodePerRunningMs: number(
      { default: 0.35, min: 0 },
      'Time that each request of the batch adds to a decode step, milliseconds.',
    ),
    maxRunning: integer({ default: 256, min: 1 }, 'Maximum requests in the batch; further ones wait.'),
    maxWaiting: integer({ default: 4096, min: 1 }, 'Maximum waiting requests; further ones get 503.'),
    kvTokens: integer({ default: 524_288, min: 1 }, 'Capacity of the KV cache, tokens.'),
    blockTokens: integer(
      { default: 16, min: 1, max: 1024 },
      'Tokens per block of the KV cache; only full blocks are shared.',
    ),
  },
  { default: {}, additionalProperties: false },
)

export const simConfig = Type.Object(
  {
    listen: Type.Object(
      {
        host: Type.String({ default: '127.0.0.1', description: 'Address to listen on.' }),
        port: integer({ default: 9001, min: 0, max: 65_535 }, 'Port of the engine; 0 selects any free port.'),
      },
      { default: {}, additionalProperties: false },
    ),
    count: integer(
      { default: 1, min: 1, max: 4096 },
      'Number of engines in this process, on consecutive ports from `listen.port` on.',
    ),
    models: Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      default: ['sim-1'],
      description: 'Model ids of the engine; requests without a model use the first one.',
    }),
    ttftMs: number({ default: 20, min: 0 }, 'Time to the first token, milliseconds.'),
    itlMs: number(
      { default: 5, min: 0 },
      'Time between tokens, milliseconds. 0: as fast as the client reads.',
    ),
    tokens: integer(
      { default: 64, min: 1, max: 1_000_000 },
      'Length of an answer in tokens, unless the request limits it.',
    ),
    seed: integer(
      { default: 1, min: 0 },
      'Seed of the generated text, which is the same for the same seed, model and prompt.',
    ),
    runtime: Type.Union(
      [
        Type.Literal('sglang'),
        Type.Literal('vllm'),
        Type.Literal('trtllm'),
        Type.Literal('mlx'),
        Type.Literal('llamacpp'),
        Type.Literal('transformers'),
      ],
      {
        default: 'sglang',
        description:
          'Simulated engine: decides model owner, routes, metric names, and where it differs from the formats that it serves.',
      },
    ),
    protocol: Type.Union([Type.Literal('http'), Type.Literal('grpc')], {
      default: 'http',
      description:
        'Protocol of the engine. grpc uses token ids of the built-in sample tokenizer, requires plugin tokenizers, and supports the settings listen, count, models, ttftMs, itlMs, tokens, seed, runtime (without llamacpp and transformers) and role.',
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
    embeddingDimensions: integer({ default: 64, min: 1, max: 8192 }, 'Default length of embedding vectors.'),
    maxModelLen: integer(
      { default: 32_768, min: 1 },
      'Context length: tokens of prompt and answer. Longer prompts are rejected.',
    ),
    fixedResponse: Type.Boolean({
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
