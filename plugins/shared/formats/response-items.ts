/**
 * Items and content parts of the Responses format that the gateway reads, for every body that holds some. A null member counts
 * as absent; further members, and items and parts of other types, are allowed. @source OpenAI API reference, Responses and Conversations
 */
import { type Static, Type } from '#kernel'
import { nullable, openUnion } from './schemas.ts'

/** Vendors put signatures into ids, which must come back unchanged. */
const MAX_CALL_ID = 4_096

const Text = Type.String()
const Name = Type.String({ minLength: 1 })
const Id = Type.Optional(
  Type.Unknown({ description: 'Letters, digits, hyphens, underscores; an id of another form is replaced.' }),
)
const CallId = Type.String({ minLength: 1, maxLength: MAX_CALL_ID })
const Status = Type.Optional(Type.Unknown())
const AnyObject = Type.Object({})

/** Parts of output whose text comes in deltas. */
export const PARTS_OF_TEXT: ReadonlySet<unknown> = new Set(['output_text', 'refusal', 'reasoning_text'])

export const ItemPart = openUnion(
  Type.Object({ type: Type.Literal('input_text'), text: Text }),
  Type.Object({
    type: Type.Literal('output_text'),
    text: Text,
    annotations: nullable(Type.Array(Type.Unknown())),
  }),
  Type.Object({ type: Type.Literal('text'), text: Text }, { description: "Text of the role's kind." }),
  Type.Object({ type: Type.Literal('refusal'), refusal: nullable(Text) }),
  Type.Object({
    type: Type.Literal('input_image'),
    image_url: nullable(Type.String({ description: 'An http, https or data URL.' })),
    detail: nullable(Text),
    file_id: nullable(Text, 'Only workers that speak the format know files by an id.'),
  }),
  Type.Object({
    type: Type.Literal('input_file'),
    file_data: nullable(Text),
    file_url: nullable(
      Text,
      'An http or https URL. Workers that cannot load it get its content, if plugins.generations.fileUrls allows it.',
    ),
    filename: nullable(Text),
    file_id: nullable(Text, 'Only workers that speak the format know files by an id.'),
  }),
  Type.Object({
    type: Type.Literal('input_audio'),
    input_audio: Type.Object({ data: Text, format: Name }),
  }),
  Type.Object({ type: Type.Literal('input_video'), video_url: Text }),
)
export type ItemPart = Static<typeof ItemPart>

const Content = Type.Union([Text, Type.Array(ItemPart)])

const TextPart = Type.Object({ type: nullable(Text), text: Text })
export const TextParts = Type.Array(TextPart)
export type TextPart = Static<typeof TextPart>

export const ItemReference = Type.Object(
  { type: Type.Literal('item_reference'), id: Name },
  { description: 'Refers to a stored item.' },
)

export const MessageItem = Type.Object({
  type: Type.Literal('message'),
  id: Id,
  role: Type.Enum(['user', 'assistant', 'system', 'developer'], { type: 'string' }),
  content: Content,
  status: Status,
  phase: nullable(Text),
  extra_content: nullable(AnyObject, 'Opaque data of the vendor, as in the message of the response.'),
})

export const FunctionCallItem = Type.Object({
  type: Type.Literal('function_call'),
  id: Id,
  call_id: CallId,
  name: Name,
  namespace: nullable(Name),
  arguments: Text,
  status: Status,
  extra_content: nullable(AnyObject, 'Opaque data of the vendor, as in the call of the response.'),
})

export const FunctionOutputItem = Type.Object({
  type: Type.Literal('function_call_output'),
  id: Id,
  call_id: CallId,
  output: Content,
  status: Status,
})

const CustomCallItem = Type.Object({
  type: Type.Literal('custom_tool_call'),
  id: Id,
  call_id: CallId,
  name: Name,
  namespace: nullable(Name),
  input: Text,
  status: Status,
})

const CustomOutputItem = Type.Object({
  type: Type.Literal('custom_tool_call_output'),
  id: Id,
  call_id: CallId,
  output: Content,
  status: Status,
})

/** A search for tools whose declarations are deferred; without a call id, one that the service ran. */
const SearchCallItem = Type.Object({
  type: Type.Literal('tool_search_call'),
  id: Id,
  call_id: nullable(CallId),
  execution: nullable(Text),
  arguments: Type.Optional(Type.Unknown()),
  status: Status,
})

const SearchOutputItem = Type.Object({
  type: Type.Literal('tool_search_output'),
  id: Id,
  call_id: nullable(CallId),
  execution: nullable(Text),
  tools: nullable(Type.Array(Type.Unknown())),
  status: Status,
})

export const ReasoningItem = Type.Object({
  type: Type.Literal('reasoning'),
  id: Id,
  summary: nullable(TextParts),
  content: nullable(TextParts),
  encrypted_content: nullable(Text),
  extra_content: nullable(AnyObject, 'Opaque data of the vendor, as in the reasoning of the response.'),
})

const McpListItem = Type.Object({
  type: Type.Literal('mcp_list_tools'),
  id: Id,
  server_label: Name,
  tools: nullable(Type.Array(Type.Unknown())),
})

const McpCallItem = Type.Object({
  type: Type.Literal('mcp_call'),
  id: Id,
  server_label: Name,
  name: Name,
  arguments: nullable(Text),
  output: nullable(Text),
  error: Type.Optional(Type.Unknown()),
  approval_request_id: nullable(Text),
  status: Status,
})

/** Any item of a request's input. */
export const InputItem = openUnion(
  MessageItem,
  FunctionCallItem,
  FunctionOutputItem,
  CustomCallItem,
  CustomOutputItem,
  SearchCallItem,
  SearchOutputItem,
  ReasoningItem,
  ItemReference,
  McpListItem,
  McpCallItem,
  Type.Object({
    type: Type.Literal('mcp_approval_request'),
    id: Id,
    server_label: Name,
    name: Name,
    arguments: nullable(Text),
  }),
  Type.Object({
    type: Type.Literal('mcp_approval_response'),
    id: Id,
    approval_request_id: Name,
    approve: Type.Boolean(),
    reason: nullable(Text),
  }),
  Type.Object({ type: Type.Literal('web_search_call'), id: Id, status: Status, action: nullable(AnyObject) }),
  Type.Object({
    type: Type.Literal('code_interpreter_call'),
    id: Id,
    status: Status,
    action: nullable(AnyObject),
    code: nullable(Text),
    container_id: nullable(Text),
    outputs: Type.Optional(Type.Unknown()),
  }),
  Type.Object({
    type: Type.Literal('file_search_call'),
    id: Id,
    status: Status,
    action: nullable(AnyObject),
    queries: nullable(Type.Array(Type.Unknown())),
    results: Type.Optional(Type.Unknown()),
  }),
  Type.Object({ type: Type.Literal('compaction'), id: Id, encrypted_content: Text }),
  Type.Object(
    { type: Type.Literal('compaction_trigger'), id: Id },
    { description: 'As the last item: the output is the compaction of the items before it.' },
  ),
  Type.Object(
    { type: Type.Literal('additional_tools'), id: Id, tools: Type.Array(Type.Unknown()) },
    { description: 'Tools that the model may use from this item on.' },
  ),
)
export type InputItem = Static<typeof InputItem>
export type ItemOf<T extends InputItem['type']> = Extract<InputItem, { type: T }>

/** An item without a type: one with a role is a message, any other with an id is a reference. */
export function withItemTypes(items: readonly unknown[]): readonly unknown[] {
  return items.map((item) => {
    if (typeof item !== 'object' || item === null || Array.isArray(item)) return item
    const { type, role, id } = item as {
      readonly type?: unknown
      readonly role?: unknown
      readonly id?: unknown
    }
    if ((type ?? null) !== null) return item
    if ((role ?? null) !== null) return { ...item, type: 'message' }
    return (id ?? null) === null ? item : { ...item, type: 'item_reference' }
  })
}

/** Values of `include`: members that responses hold only on demand. @source OpenAI API reference, Responses */
const INCLUDES = [
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
] as const

export type Include = (typeof INCLUDES)[number]

export function isInclude(name: unknown): name is Include {
  return INCLUDES.includes(name as Include)
}

/** Names in a query: repeated, with brackets, or joined by commas, since clients use all three forms. */
export function includeNames(query: URLSearchParams): string[] {
  const given = [...query.getAll('include'), ...query.getAll('include[]')]
  return given.flatMap((text) => text.split(',')).filter((name) => name !== '')
}
