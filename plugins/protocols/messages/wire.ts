/** Bodies of the Messages API: one schema each, for validation, types and OpenAPI alike. @source Anthropic API reference, Messages */
import { type Static, type TSchema, Type } from '#kernel'
import { nullable, nullableStringOrList, stringOrList } from '#shared'

const MAX_MESSAGES = 100_000
const MIN_THINKING_TOKENS = 1_024

const literals = <Name extends string>(...names: Name[]) => Type.Unsafe<Name>({ type: 'string', enum: names })
const nonEmpty = Type.String({ minLength: 1 })
const base64 = Type.String({ pattern: '^[A-Za-z0-9+/]+={0,2}$' })

/**
 * Objects whose `type` determines their other members. Types that are not listed are valid too, since a worker may know them:
 * at run time they reach the `default` of a `switch` over the type. Kinds are tried in order, so the usual ones come first.
 */
function tagged<Kinds extends Record<string, TSchema>>(kinds: Kinds) {
  const branches = Object.entries(kinds).reduceRight<object>(
    (rest, [kind, schema]) => ({
      if: { properties: { type: { const: kind } } },
      // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
      then: schema,
      else: rest,
    }),
    {},
  )
  return Type.Unsafe<
    { [Kind in keyof Kinds & string]: { readonly type: Kind } & Static<Kinds[Kind]> }[keyof Kinds & string]
  >({
    type: 'object',
    required: ['type'],
    properties: { type: { type: 'string' } },
    // Checked after the type: a block without one must be reported as such.
    if: { required: ['type'] },
    // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
    then: branches,
  })
}

const Text = Type.Object({ text: Type.String() })
const Image = Type.Object({
  source: tagged({
    base64: Type.Object({
      media_type: Type.Unsafe<string>(literals('image/jpeg', 'image/png', 'image/gif', 'image/webp')),
      data: base64,
    }),
    url: Type.Object({ url: nonEmpty }),
  }),
})
const Document = Type.Object({
  source: tagged({
    text: Type.Object({ data: Type.String() }),
    content: Type.Object({ content: stringOrList({ items: tagged({ text: Text, image: Image }) }) }),
    base64: Type.Object({ media_type: Type.String(), data: base64 }),
    url: Type.Object({ url: nonEmpty }),
  }),
  title: Type.Optional(Type.Unknown()),
  context: Type.Optional(Type.Unknown()),
})
const SearchResult = Type.Object({
  title: Type.Optional(Type.Unknown()),
  source: Type.Optional(Type.Unknown()),
  content: Type.Optional(Type.Unknown()),
})

const ResultBlock = tagged({
  text: Text,
  image: Image,
  document: Document,
  search_result: SearchResult,
  tool_reference: Type.Object({ tool_name: Type.Optional(Type.Unknown()) }),
})
const ToolResult = Type.Object({
  tool_use_id: nonEmpty,
  content: nullableStringOrList({ items: ResultBlock }),
  is_error: nullable(Type.Boolean()),
})
const extraContent = {
  extra_content: nullable(Type.Object({}), 'Opaque data of the vendor, as in the block of the response.'),
}
const ToolUse = { id: nonEmpty, name: nonEmpty, input: Type.Optional(Type.Unknown()), ...extraContent }

const Block = tagged({
  text: Type.Object({ text: Type.String(), ...extraContent }),
  tool_use: Type.Object(ToolUse),
  tool_result: ToolResult,
  thinking: Type.Object({
    thinking: Type.String(),
    signature: Type.Optional(Type.Unknown()),
    ...extraContent,
  }),
  image: Image,
  document: Document,
  search_result: SearchResult,
  container_upload: Type.Object({}),
  compaction: Type.Object({ content: nullable(Type.String()) }),
  mcp_tool_use: Type.Object({ ...ToolUse, server_name: Type.Optional(Type.Unknown()) }),
  mcp_tool_result: ToolResult,
})

/** A content block of a request. Others than these occur: see `tagged`. */
export type WireBlock = Static<typeof Block>
export type WireBlockOf<Kind extends WireBlock['type']> = Extract<WireBlock, { readonly type: Kind }>
/** A content block inside of a tool result. */
export type WireResultBlock = Static<typeof ResultBlock>

const Message = Type.Object({
  role: literals('user', 'assistant', 'system'),
  content: stringOrList({ items: Block }),
})

export type WireMessage = Static<typeof Message>

const ToolSettings = Type.Object({
  enabled: nullable(Type.Boolean()),
  defer_loading: nullable(Type.Boolean()),
})

/** A tool of the client (no type, or `custom`), of the vendor, or the tools of a server (`mcp_toolset`). */
const Tool = Type.Unsafe<{
  type?: string | null
  /** Toolsets have none. */
  name?: string
  description?: unknown
  input_schema?: Record<string, unknown> | null
  strict?: unknown
  defer_loading?: unknown
  /** Of toolsets. */
  mcp_server_name?: string
  default_config?: Static<typeof ToolSettings> | null
  configs?: Record<string, Static<typeof ToolSettings> | null> | null
}>({
  type: 'object',
  properties: { type: { type: ['string', 'null'] } },
  if: { properties: { type: { const: 'mcp_toolset' } }, required: ['type'] },
  // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
  then: Type.Object({
    mcp_server_name: Type.Optional(Type.String()),
    default_config: nullable(ToolSettings),
    configs: Type.Optional(
      Type.Unsafe<object | null>({
        type: ['object', 'null'],
        additionalProperties: { ...ToolSettings, type: ['object', 'null'] },
      }),
    ),
  }),
  else: {
    properties: { name: nonEmpty, input_schema: nullable(Type.Object({})) },
    // A toolset of the vendor has no name.
    if: { properties: { type: { enum: [null, 'custom'] } } },
    // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
    then: { required: ['name'] },
  },
})

export type WireTool = Static<typeof Tool>

const Server = Type.Object({
  name: nonEmpty,
  url: nullable(Type.String()),
  authorization_token: Type.Optional(Type.Unknown()),
  tool_configuration: nullable(
    Type.Object({
      enabled: nullable(Type.Boolean()),
      allowed_tools: nullable(Type.Array(Type.String())),
    }),
    'Older form of a toolset.',
  ),
})

export type WireServer = Static<typeof Server>

const shared = {
  messages: Type.Array(Message, { minItems: 1, maxItems: MAX_MESSAGES }),
  system: nullableStringOrList({ items: tagged({ text: Text }) }),
  tools: nullable(Type.Array(Tool)),
  tool_choice: nullable(
    Type.Object({
      type: literals('auto', 'any', 'tool', 'none'),
      name: Type.Optional(Type.String()),
      disable_parallel_tool_use: nullable(Type.Boolean()),
    }),
  ),
  thinking: nullable(
    Type.Object({
      type: literals('enabled', 'adaptive', 'between_tools', 'disabled'),
      budget_tokens: Type.Optional(Type.Integer({ minimum: MIN_THINKING_TOKENS })),
      display: Type.Optional(Type.Unknown()),
    }),
  ),
  stream: nullable(Type.Boolean()),
  stop_sequences: nullable(Type.Array(Type.String())),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  top_k: nullable(Type.Integer({ minimum: -1 })),
  metadata: nullable(Type.Object({ user_id: Type.Optional(Type.Unknown()) })),
  output_config: nullable(
    Type.Object({ effort: Type.Optional(Type.Unknown()), format: Type.Optional(Type.Unknown()) }),
  ),
  output_format: Type.Optional(Type.Unknown({ description: 'Older form of output_config.format.' })),
  mcp_servers: nullable(
    Type.Array(Server),
    'Tool servers of `mcp_toolset` tools. The gateway calls them (plugin `mcp`). An external service that runs such tools itself gets them instead, unless the request has the header `x-weir-mcp: enabled` or the worker has the label `mcp: gateway`.',
  ),
}

/** Members that are not listed are passed on to workers that speak the format; for others, a warning header names them. */
export const MessageBody = Type.Object({
  model: nonEmpty,
  max_tokens: Type.Integer({ minimum: 1, description: 'Tokens of output, thinking included.' }),
  ...shared,
})

export const CountBody = Type.Object({
  model: nonEmpty,
  max_tokens: nullable(Type.Integer({ minimum: 1 })),
  ...shared,
})

/** A valid body of either route. */
export type MessagesRequest = Static<typeof CountBody>

export const Usage = Type.Object({
  input_tokens: Type.Integer({
    description: 'Tokens of the prompt that were neither read from a cache nor written to one.',
  }),
  cache_creation_input_tokens: Type.Integer(),
  cache_read_input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  output_tokens_details: Type.Optional(Type.Object({ thinking_tokens: Type.Integer() })),
  estimated: Type.Optional(
    Type.Boolean({ description: 'The worker has not reported the counts: they are estimated.' }),
  ),
})

export type WireUsage = Static<typeof Usage>

const toReturn = {
  extra_content: nullable(Type.Object({}), 'Opaque data of the vendor; send it back with the block.'),
}
const ResponseBlock = tagged({
  thinking: Type.Object({ thinking: Type.String(), signature: Type.String() }),
  text: Type.Object({
    text: Type.String({ description: 'Empty in the block behind the answer that holds `extra_content`.' }),
    citations: Type.Optional(Type.Array(Type.Unknown())),
    ...toReturn,
  }),
  tool_use: Type.Object({ id: Type.String(), name: Type.String(), input: Type.Object({}), ...toReturn }),
  mcp_tool_use: Type.Object({
    id: Type.String(),
    name: Type.String(),
    server_name: Type.String(),
    input: Type.Object({}),
  }),
  mcp_tool_result: Type.Object({
    tool_use_id: Type.String(),
    is_error: Type.Boolean(),
    content: Type.Array(tagged({ text: Text })),
  }),
})

/** A content block of a response. Others than these occur: see `tagged`. */
export type WireResponseBlock = Static<typeof ResponseBlock>

export const MessageResponse = Type.Object({
  id: Type.String(),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: Type.String({
    description: 'As in the request; as the worker names itself if it speaks the format.',
  }),
  content: Type.Array(ResponseBlock),
  stop_reason: literals('end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal', 'pause_turn'),
  stop_sequence: Type.Union([Type.String(), Type.Null()]),
  usage: Usage,
})

export type MessageResponse = Static<typeof MessageResponse>

export const CountResponse = Type.Object({ input_tokens: Type.Integer() })
