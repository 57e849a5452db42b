/** Schemas of the request bodies of serving and control routes. */
import { defineValidator, integer, number, type Static, Type } from '#kernel'
import { nullable } from '#shared'

const open = { additionalProperties: true } as const

const count = (minimum: number) => Type.Integer({ minimum })

/** All choices are generated before the first is sent. */
const MAX_CHOICES = 128

const sampling = {
  min_tokens: nullable(count(0)),
  ignore_eos: nullable(Type.Boolean()),
  no_stop_trim: nullable(Type.Boolean()),
  stop: nullable(Type.Union([Type.String(), Type.Array(Type.String())])),
  n: nullable(Type.Integer({ minimum: 1, maximum: MAX_CHOICES })),
}

const streaming = {
  stream: nullable(Type.Boolean()),
  stream_options: nullable(Type.Object({ include_usage: nullable(Type.Boolean()) }, open)),
}

const common = {
  model: nullable(Type.String()),
  rid: nullable(Type.Union([Type.String(), Type.Array(Type.String())])),
  sim_fault: nullable(Type.String({ description: 'A fault for this request only.' })),
}

const ContentPartSchema = Type.Object({ type: Type.String(), text: nullable(Type.String()) }, open)

const ToolCallSchema = Type.Object(
  { function: Type.Object({ name: Type.String(), arguments: Type.String() }, open) },
  open,
)

const ChatMessageSchema = Type.Object(
  {
    role: Type.String(),
    content: nullable(Type.Union([Type.String(), Type.Array(ContentPartSchema)])),
    tool_calls: nullable(Type.Array(ToolCallSchema)),
  },
  open,
)

export const ToolSchema = Type.Object(
  {
    type: Type.String(),
    function: Type.Optional(
      Type.Object({ name: Type.String(), parameters: Type.Optional(Type.Unknown()) }, open),
    ),
  },
  open,
)

const ChatRequestSchema = Type.Object(
  {
    ...common,
    ...sampling,
    ...streaming,
    messages: Type.Array(ChatMessageSchema, { minItems: 1 }),
    max_tokens: nullable(count(0)),
    max_completion_tokens: nullable(count(1)),
    tools: nullable(Type.Array(ToolSchema)),
    tool_choice: Type.Optional(Type.Unknown()),
    response_format: nullable(
      Type.Object(
        {
          type: Type.String(),
          json_schema: Type.Optional(Type.Object({ schema: Type.Optional(Type.Unknown()) }, open)),
        },
        open,
      ),
    ),
  },
  open,
)

const ResponsesRequestSchema = Type.Object(
  {
    ...common,
    stream: nullable(Type.Boolean()),
    store: nullable(Type.Boolean()),
    previous_response_id: nullable(Type.String()),
    instructions: nullable(Type.String()),
    input: Type.Union([Type.String(), Type.Array(Type.Object({}, open), { minItems: 1 })]),
    max_output_tokens: nullable(count(1)),
    tools: nullable(Type.Array(Type.Object({ type: Type.String() }, open))),
    tool_choice: Type.Optional(Type.Unknown()),
    text: nullable(Type.Object({ format: nullable(Type.Object({ type: Type.String() }, open)) }, open)),
  },
  open,
)

const TokenIds = Type.Array(Type.Integer())

/** Text or token ids, one or many. */
const PromptSchema = Type.Union([Type.String(), Type.Array(Type.String()), TokenIds, Type.Array(TokenIds)])

const CompletionRequestSchema = Type.Object(
  {
    ...common,
    ...sampling,
    ...streaming,
    prompt: PromptSchema,
    max_tokens: nullable(count(0)),
    echo: nullable(Type.Boolean()),
    suffix: nullable(Type.String()),
  },
  open,
)

const GenerateRequestSchema = Type.Object(
  {
    ...common,
    stream: nullable(Type.Boolean()),
    text: nullable(Type.Union([Type.String(), Type.Array(Type.String())])),
    input_ids: nullable(Type.Union([TokenIds, Type.Array(TokenIds)])),
    sampling_params: nullable(
      Type.Object(
        { ...sampling, max_new_tokens: nullable(count(0)), min_new_tokens: nullable(count(0)) },
        open,
      ),
    ),
  },
  open,
)

const EmbeddingRequestSchema = Type.Object(
  {
    ...common,
    input: PromptSchema,
    encoding_format: nullable(Type.Union([Type.Literal('float'), Type.Literal('base64')])),
    dimensions: nullable(Type.Integer({ minimum: 1, maximum: 8192 })),
  },
  open,
)

const RerankRequestSchema = Type.Object(
  { ...common, query: Type.String(), documents: Type.Array(Type.String(), { minItems: 1 }) },
  open,
)

const ClassifyRequestSchema = Type.Object({ ...common, input: PromptSchema }, open)

const matching = {
  count: integer({ default: 1, min: 1 }, 'Number of matching requests it applies to.'),
  match: Type.Object(
    {
      path: Type.Optional(Type.String({ description: 'Exact path. Default: any POST of the serving API.' })),
    },
    { default: {}, additionalProperties: false },
  ),
}

/** Body of POST /sim/faults. */
const FaultRuleSchema = Type.Object(
  {
    fault: Type.String({ minLength: 1, description: 'Such as `status=503`; see faults.ts.' }),
    ...matching,
    probability: number(
      { default: 1, min: 0, max: 1 },
      'Probability that it applies to a matching request. Other requests do not count.',
    ),
  },
  { additionalProperties: false },
)

/** Body of POST /sim/answers: parts of the answer, or the whole body. */
const ScriptedAnswerSchema = Type.Object(
  {
    reasoning: Type.Optional(Type.String({ description: 'Reasoning text; chat only.' })),
    text: Type.Optional(Type.String({ description: 'Answer text.' })),
    refusal: Type.Optional(Type.String({ description: 'What the model refuses with; chat only.' })),
    finish_reason: Type.Optional(
      Type.String({ description: 'Told in place of the reason that follows from the answer; chat only.' }),
    ),
    usage: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'Members of the usage, in place of or beside the counted ones; chat only.',
      }),
    ),
    tool_calls: Type.Optional(
      Type.Array(
        Type.Object({ name: Type.String(), arguments: Type.Unknown() }, { additionalProperties: false }),
        {
          minItems: 1,
          description: 'Tools that the model calls; chat only.',
        },
      ),
    ),
    body: Type.Optional(
      Type.Unknown({
        description: 'The response itself. To a streamed request: one event, or one per member of an array.',
      }),
    ),
    ...matching,
  },
  { additionalProperties: false },
)

export type ChatMessage = Static<typeof ChatMessageSchema>
export type Tool = Static<typeof ToolSchema>
export type ChatRequest = Static<typeof ChatRequestSchema>
export type ResponsesRequest = Static<typeof ResponsesRequestSchema>
export type CompletionRequest = Static<typeof CompletionRequestSchema>
export type GenerateRequest = Static<typeof GenerateRequestSchema>
export type EmbeddingRequest = Static<typeof EmbeddingRequestSchema>
export type RerankRequest = Static<typeof RerankRequestSchema>
export type ClassifyRequest = Static<typeof ClassifyRequestSchema>
export type FaultRule = Static<typeof FaultRuleSchema>
export type ScriptedAnswer = Static<typeof ScriptedAnswerSchema>
export type Prompt = Static<typeof PromptSchema>

export const validators = {
  chat: defineValidator(ChatRequestSchema),
  responses: defineValidator(ResponsesRequestSchema),
  completion: defineValidator(CompletionRequestSchema),
  generate: defineValidator(GenerateRequestSchema),
  embedding: defineValidator(EmbeddingRequestSchema),
  rerank: defineValidator(RerankRequestSchema),
  classify: defineValidator(ClassifyRequestSchema),
  faultRule: defineValidator(FaultRuleSchema),
  scriptedAnswer: defineValidator(ScriptedAnswerSchema),
}
