/** Shapes on the wire, for the OpenAPI document; bodies are read by `read/`. @source OpenAI API reference, Responses */
import { Type } from '#kernel'

const Anything = Type.Object({}, { additionalProperties: true })
const Optional = {
  text: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  flag: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
  number: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
  integer: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
  object: Type.Optional(Type.Union([Anything, Type.Null()])),
}

export const CreateBody = Type.Object(
  {
    model: Type.String({ minLength: 1 }),
    input: Type.Union([Type.String(), Type.Array(Anything)]),
    instructions: Optional.text,
    max_output_tokens: Optional.integer,
    max_tool_calls: Optional.integer,
    temperature: Optional.number,
    top_p: Optional.number,
    stream: Optional.flag,
    store: Optional.flag,
    background: Optional.flag,
    tools: Type.Optional(Type.Union([Type.Array(Anything), Type.Null()])),
    tool_choice: Type.Optional(Type.Union([Type.String(), Anything, Type.Null()])),
    parallel_tool_calls: Optional.flag,
    previous_response_id: Optional.text,
    conversation: Type.Optional(Type.Union([Type.String(), Anything, Type.Null()])),
    reasoning: Optional.object,
    text: Optional.object,
    metadata: Optional.object,
    include: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()])),
    user: Optional.text,
    prompt_cache_key: Optional.text,
    safety_identifier: Optional.text,
    truncation: Optional.text,
    top_logprobs: Optional.integer,
    top_k: Optional.integer,
    min_p: Optional.number,
    repetition_penalty: Optional.number,
    frequency_penalty: Optional.number,
    presence_penalty: Optional.number,
    stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String()), Type.Null()])),
  },
  { additionalProperties: true, description: 'Members beyond these are ignored.' },
)

export const ResponseReply = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('response'),
    created_at: Type.Integer(),
    status: Type.String(),
    model: Type.String(),
    output: Type.Array(Anything),
    usage: Type.Union([Anything, Type.Null()]),
    error: Type.Union([Anything, Type.Null()]),
    tools: Type.Array(Anything),
    store: Type.Boolean(),
  },
  { additionalProperties: true },
)

export const ItemList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(Anything),
  first_id: Type.Union([Type.String(), Type.Null()]),
  last_id: Type.Union([Type.String(), Type.Null()]),
  has_more: Type.Boolean(),
})

export const DeletedReply = Type.Object({
  id: Type.String(),
  object: Type.Literal('response.deleted'),
  deleted: Type.Literal(true),
})
