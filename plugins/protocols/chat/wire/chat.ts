/** Bodies of chat completions, for the routes and for the engine adapter. Unknown fields are allowed: the worker may know them. */
import { isObject, type Static, Type } from '#kernel'
import { nullable, nullableStringOrList, openUnion, stringOrList, type Unchecked, unionBy } from '#shared'
import { commonFields, list, Range, U32, Usage } from './fields.ts'

const text = { type: Type.Literal('text'), text: Type.String() }

const Part = openUnion(
  Type.Object(text),
  Type.Object({
    type: Type.Literal('image_url'),
    image_url: Type.Object({ url: Type.String(), detail: nullable(Type.String()) }),
  }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  Type.Object({
    type: Type.Literal('audio_url'),
    audio_url: Type.Object({ url: Type.String() }),
  }),
  Type.Object({
    type: Type.Literal('input_audio'),
    input_audio: Type.Object({ data: Type.String(), format: Type.String() }),
  }),
  Type.Object({
    type: Type.Literal('video_url'),
    video_url: Type.Object({ url: Type.String() }),
  }),
  Type.Object({
    type: Type.Literal('file'),
    file: Type.Object({
      file_id: Type.Optional(Type.String()),
      file_data: Type.Optional(Type.String({ description: 'A data URL.' })),
      filename: Type.Optional(Type.String()),
    }),
  }),
)

const Content = stringOrList({ items: Part })
const UserContent = stringOrList({ items: Part, minItems: 1, minLength: 1 })
const OptionalContent = nullableStringOrList({ items: Part })

const ExtraContent = nullable(
  Type.Object({}),
  'Opaque data of the vendor, such as a thought signature; send it back with the call or message.',
)

const FunctionCall = Type.Object({
  id: Type.String(),
  type: Type.Literal('function'),
  function: Type.Object({ name: Type.String(), arguments: nullable(Type.String()) }),
  extra_content: ExtraContent,
})

const ToolCall = openUnion(
  FunctionCall,
  Type.Object({
    id: Type.String(),
    type: Type.Literal('custom'),
    custom: Type.Object({ name: Type.String(), input: Type.String() }),
    extra_content: ExtraContent,
  }),
)

export const ChatMessage = unionBy(
  'role',
  Type.Object({ role: Type.Literal('system'), content: Content, name: nullable(Type.String()) }),
  Type.Object({
    role: Type.Literal('developer'),
    content: Content,
    name: nullable(Type.String()),
  }),
  Type.Object({ role: Type.Literal('user'), content: UserContent, name: nullable(Type.String()) }),
  Type.Object({
    role: Type.Literal('assistant'),
    content: OptionalContent,
    tool_calls: nullable(Type.Array(ToolCall)),
    function_call: nullable(
      Type.Object({ name: Type.String(), arguments: nullable(Type.String()) }),
      'Older form of tool_calls.',
    ),
    refusal: nullable(Type.String()),
    reasoning_content: nullable(Type.String()),
    reasoning: Type.Optional(Type.Unknown({ description: 'Name of `reasoning_content` with some engines.' })),
    extra_content: ExtraContent,
    name: nullable(Type.String()),
  }),
  Type.Object({ role: Type.Literal('tool'), content: Content, tool_call_id: Type.String() }),
  Type.Object({ role: Type.Literal('function'), content: Type.String(), name: Type.String() }),
)

const FunctionDefinition = Type.Object({
  name: Type.String(),
  description: nullable(Type.String()),
  parameters: nullable(Type.Record(Type.String(), Type.Unknown())),
  strict: nullable(Type.Boolean()),
})

const CustomTool = Type.Object({
  name: Type.String(),
  description: nullable(Type.String()),
  format: nullable(Type.Object({})),
})

const Named = Type.Object({ name: Type.String() })

const ToolReference = Type.Object({
  type: Type.String(),
  function: Type.Optional(Named),
  custom: Type.Optional(Named),
})

const AllowedTools = Type.Object({ mode: Type.String(), tools: Type.Array(ToolReference) })

/** Modes and references beyond these are left to the semantic rules, which have names for them. */
const ToolChoice = Type.Unsafe<
  | 'auto'
  | 'none'
  | 'required'
  | { type: 'function'; function: { name: string } }
  | { type: 'custom'; custom: { name: string } }
  | { type: 'allowed_tools'; allowed_tools: Static<typeof AllowedTools> }
  | ({ type: 'allowed_tools'; allowed_tools?: undefined } & Static<typeof AllowedTools>)
  | null
>({
  if: { type: 'object' },
  // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
  then: unionBy(
    'type',
    Type.Object({ type: Type.Literal('function'), function: Named }),
    Type.Object({ type: Type.Literal('custom'), custom: Named }),
    Type.Object({
      type: Type.Literal('allowed_tools'),
      allowed_tools: Type.Optional(AllowedTools),
      ...Type.Partial(AllowedTools).properties,
    }),
  ),
  else: { enum: ['auto', 'none', 'required', null] },
})

const ResponseFormat = unionBy(
  'type',
  Type.Object({ type: Type.Literal('text') }),
  Type.Object({ type: Type.Literal('json_object') }),
  Type.Object({
    type: Type.Literal('json_schema'),
    json_schema: Type.Object({
      name: Type.String(),
      description: nullable(Type.String()),
      schema: nullable(Type.Record(Type.String(), Type.Unknown())),
      strict: nullable(Type.Boolean()),
    }),
  }),
)

export const ChatRequest = Type.Object({
  ...commonFields,
  messages: Type.Array(ChatMessage, { minItems: 1 }),
  max_completion_tokens: nullable(U32(1)),
  max_tokens: nullable(U32(1), 'Older name of max_completion_tokens; forwarded as it came.'),
  n: nullable(Type.Integer({ minimum: 1, maximum: 10 })),
  logprobs: nullable(Type.Boolean(), 'Null means false.'),
  top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 }), 'Only with logprobs.'),
  tools: nullable(
    Type.Array(
      openUnion(
        Type.Object({ type: Type.Literal('function'), function: FunctionDefinition }),
        Type.Object({ type: Type.Literal('custom'), custom: CustomTool }),
      ),
    ),
  ),
  tool_choice: Type.Optional(ToolChoice),
  functions: nullable(Type.Array(FunctionDefinition), 'Older form of tools.'),
  function_call: Type.Optional(Type.Unknown({ description: 'Older form of tool_choice.' })),
  response_format: nullable(ResponseFormat),
  parallel_tool_calls: nullable(Type.Boolean()),
  metadata: nullable(Type.Record(Type.String(), Type.String())),
  modalities: nullable(Type.Array(Type.String())),
  reasoning_effort: nullable(Type.Union([Type.String(), Range(0, 1_000_000)])),
  service_tier: nullable(Type.String()),
  prompt_cache_key: nullable(Type.String()),
  safety_identifier: nullable(Type.String()),
  verbosity: nullable(Type.String()),
  return_audio: nullable(Type.Boolean()),
})

export type ChatRequest = Static<typeof ChatRequest>

const Logprob = {
  token: Type.String(),
  logprob: Type.Number(),
  bytes: Type.Union([list(Type.Integer()), Type.Null()]),
}

const ResponseMessage = Type.Object({
  role: Type.Literal('assistant'),
  content: nullable(Type.String()),
  reasoning_content: nullable(Type.String()),
  refusal: nullable(Type.String()),
  annotations: nullable(list(Type.Unknown())),
  images: nullable(
    list(
      Type.Object({
        type: Type.Literal('image_url'),
        index: Type.Integer(),
        image_url: Type.Object({ url: Type.String() }),
      }),
    ),
    'Of models that draw.',
  ),
  tool_calls: nullable(list(ToolCall)),
  extra_content: ExtraContent,
})

const ResponseChoice = Type.Object({
  index: Type.Integer(),
  message: ResponseMessage,
  logprobs: nullable(
    Type.Object({
      content: list(Type.Object({ ...Logprob, top_logprobs: list(Type.Object(Logprob)) })),
    }),
  ),
  finish_reason: nullable(Type.String()),
  matched_stop: nullable(
    Type.Union([Type.String(), Type.Integer()]),
    'Stop string or id of the stop token, from engines that report it.',
  ),
  token_ids: nullable(list(Type.Integer()), 'With return_token_ids.'),
})

/** Written for generated answers; responses of workers that are relayed are not checked. */
export const ChatResponse = Type.Object({
  id: Type.String(),
  object: Type.Literal('chat.completion'),
  created: Type.Integer({ description: 'Unix time in seconds.' }),
  model: Type.String(),
  system_fingerprint: nullable(Type.String()),
  choices: list(ResponseChoice),
  usage: nullable(Usage),
  service_tier: nullable(Type.String()),
})

export type ChatResponse = Static<typeof ChatResponse>
export type ChatResponseChoice = Static<typeof ResponseChoice>

/** A tool call of a worker's answer, whole or a part of it. */
export interface UncheckedToolCall extends Omit<Unchecked<Static<typeof FunctionCall>>, 'function'> {
  readonly index?: unknown
  readonly function?: Unchecked<Static<typeof FunctionCall>['function']> | null
}
/** The delta of a chunk, or the message of a whole answer. */
export type UncheckedDelta = Unchecked<Static<typeof ResponseMessage>> & {
  /** Of models that draw, in the form of OpenRouter. */
  readonly images?: unknown
  /** Name of `reasoning_content` with some engines. */
  readonly reasoning?: unknown
  /** Older form of `tool_calls`. */
  readonly function_call?: unknown
}
/** A choice of a worker's chunk or answer. */
export type UncheckedChoice = Unchecked<ChatResponseChoice> & {
  readonly delta?: unknown
  /** Of completions. */
  readonly text?: unknown
  /** Name of `matched_stop` with some engines. */
  readonly stop_reason?: unknown
}
/** A worker's chunk or answer; completions have the same members. */
export type UncheckedResponse = Unchecked<ChatResponse>

// Sources of a text: a chat nests the members of a URL citation under its type; generations, as all other formats, do not.

const URL_CITATION = 'url_citation'

/** @param annotation of a generation */
export function toChatAnnotation(annotation: unknown): unknown {
  if (!isObject(annotation) || annotation.type !== URL_CITATION) return annotation
  const { type, ...citation } = annotation
  return { type, [URL_CITATION]: citation }
}

/** @param annotation of a chat worker, some of which do not nest */
export function fromChatAnnotation(annotation: unknown): unknown {
  if (!isObject(annotation) || annotation.type !== URL_CITATION) return annotation
  const { type, [URL_CITATION]: citation, ...rest } = annotation
  return isObject(citation) ? { type, ...rest, ...citation } : annotation
}
