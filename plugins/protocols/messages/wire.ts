/** Messages requests and replies on the wire. @source Anthropic API reference, Messages */
import { Type } from '#kernel'

/** A content block, of whatever type; its members are checked where they are read. */
export interface WireBlock {
  readonly type: string
  readonly [member: string]: unknown
}

export type WireRole = 'user' | 'assistant' | 'system'

export interface WireMessage {
  readonly role: WireRole
  readonly content: string | readonly WireBlock[]
}

export interface WireTool {
  /** Absent, null or `custom` for a tool of the client's own. */
  readonly type?: string | null
  /** Toolsets have none. */
  readonly name?: string
  readonly [member: string]: unknown
}

export interface WireToolChoice {
  readonly type: 'auto' | 'any' | 'tool' | 'none'
  readonly name?: string
  readonly disable_parallel_tool_use?: boolean | null
}

/** A body whose shape was checked down to the types of its blocks. */
export interface MessagesRequest {
  readonly model: string
  /** Absent only in requests for a count. */
  readonly max_tokens?: number
  readonly messages: readonly WireMessage[]
  readonly system?: string | readonly WireBlock[] | null
  readonly stream?: boolean | null
  readonly stop_sequences?: readonly string[] | null
  readonly temperature?: number | null
  readonly top_p?: number | null
  readonly top_k?: number | null
  readonly tools?: readonly WireTool[] | null
  readonly tool_choice?: WireToolChoice | null
  readonly thinking?: {
    readonly type: string
    readonly budget_tokens?: number
    readonly display?: unknown
  } | null
  readonly output_config?: { readonly effort?: unknown; readonly format?: unknown } | null
  readonly output_format?: unknown
  readonly metadata?: { readonly user_id?: unknown } | null
}

const Block = Type.Object({ type: Type.String() }, { additionalProperties: true })
const Content = Type.Union([Type.String(), Type.Array(Block)])
const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

const shared = {
  model: Type.String({ minLength: 1 }),
  messages: Type.Array(
    Type.Object({
      role: Type.Union([Type.Literal('user'), Type.Literal('assistant'), Type.Literal('system')]),
      content: Content,
    }),
    { minItems: 1 },
  ),
  system: nullable(Content),
  tools: nullable(Type.Array(Type.Object({}, { additionalProperties: true }))),
  tool_choice: nullable(Type.Object({ type: Type.String(), name: Type.Optional(Type.String()) })),
  thinking: nullable(Type.Object({ type: Type.String() }, { additionalProperties: true })),
}

/** For the documentation: what is not named here is passed on, or ignored where nobody could take it. */
export const MessageBody = Type.Object(
  {
    ...shared,
    max_tokens: Type.Integer({ minimum: 1, description: 'Tokens of output, thinking included.' }),
    stream: nullable(Type.Boolean()),
    stop_sequences: nullable(Type.Array(Type.String())),
    temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
    top_k: nullable(Type.Integer({ minimum: -1 })),
    metadata: nullable(Type.Object({}, { additionalProperties: true })),
    mcp_servers: Type.Optional(
      Type.Array(Type.Object({ name: Type.String() }, { additionalProperties: true }), {
        description:
          'Tool servers of `mcp_toolset` tools. The gateway asks them (plugin `mcp`), but for a service that runs such tools itself: there only with the header `x-weir-mcp: enabled`, or for workers with the label `mcp: gateway`.',
      }),
    ),
  },
  { additionalProperties: true },
)

export const CountBody = Type.Object(shared, { additionalProperties: true })

export const Usage = Type.Object({
  input_tokens: Type.Integer({
    description: 'Of the prompt, those neither read from a cache nor written to one.',
  }),
  cache_creation_input_tokens: Type.Integer(),
  cache_read_input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
})

export const MessageReply = Type.Object({
  id: Type.String(),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: Type.String({
    description: 'As the client named it; as the worker calls itself where it speaks the format.',
  }),
  content: Type.Array(Block),
  stop_reason: Type.String(),
  stop_sequence: Type.Union([Type.String(), Type.Null()]),
  usage: Usage,
})

export const CountReply = Type.Object({ input_tokens: Type.Integer() })
