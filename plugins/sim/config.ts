/** The simulated engine's section of the configuration file. */
import { type Static, Type } from '#kernel'

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
export type SimRuntime = SimConfig['runtime']
