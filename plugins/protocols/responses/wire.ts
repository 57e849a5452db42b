/**
 * Bodies of the Responses API. Each schema checks the body, gives its type and documents it; null counts as absent.
 * @source OpenAI API reference, Responses
 */
import {
  defineValidator,
  type FieldProblem,
  type GatewayError,
  problemText,
  type Static,
  Type,
} from '#kernel'
import { bracketPath, InputItem, nullable, unionBy } from '#shared'
import { responsesErrors } from './errors.ts'

const Anything = Type.Object({}, { additionalProperties: true })
const Text = nullable(Type.String())
const Flag = nullable(Type.Boolean())
const Names = nullable(Type.Array(Type.String(), { maxItems: 1_024 }))
const choice = <const T extends string[]>(...names: T) => nullable(Type.Enum(names, { type: 'string' }))
const numberFrom = (minimum: number, maximum: number) => nullable(Type.Number({ minimum, maximum }))
const count = nullable(Type.Integer({ minimum: 1 }))

const FunctionName = nullable(
  Type.String({ pattern: '^[A-Za-z0-9_-]{0,128}$', description: 'Letters, digits, hyphens, underscores.' }),
)
const functionMembers = {
  name: FunctionName,
  description: Text,
  parameters: nullable(Anything),
  strict: Flag,
}

const FunctionTool = Type.Object({
  type: Type.Literal('function'),
  ...functionMembers,
  function: nullable(Type.Object(functionMembers, { description: 'The form of chat completions.' })),
})
export type FunctionTool = Static<typeof FunctionTool>

const ToolFilter = Type.Object({ tool_names: Names, read_only: Flag })
export type ToolFilter = Static<typeof ToolFilter>

const McpTool = Type.Object({
  type: Type.Literal('mcp'),
  server_label: Type.String({ minLength: 1 }),
  server_url: Text,
  server_description: Text,
  authorization: Text,
  headers: nullable(
    Type.Unsafe<Readonly<Record<string, string>>>({
      type: 'object',
      maxProperties: 64,
      additionalProperties: { type: 'string' },
    }),
  ),
  allowed_tools: nullable(Type.Union([Type.Array(Type.String(), { maxItems: 1_024 }), ToolFilter])),
  require_approval: nullable(
    Type.Union([
      Type.Enum(['always', 'never'], { type: 'string' }),
      Type.Object({ always: nullable(ToolFilter), never: nullable(ToolFilter) }),
    ]),
  ),
  elicitation: nullable(
    Type.Boolean({
      description:
        'Questions of the server to its user become approval requests (not a member of the OpenAI API).',
    }),
  ),
  connector_id: Type.Optional(Type.Unknown({ description: 'Not supported.' })),
  tunnel_id: Type.Optional(Type.Unknown({ description: 'Not supported.' })),
})
export type McpTool = Static<typeof McpTool>

/** A tool of a type that is neither; workers may know it. */
export interface OtherTool {
  readonly type: string
  readonly [member: string]: unknown
}

const Tool = Type.Unsafe<FunctionTool | McpTool | OtherTool>({
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string', minLength: 1 } },
  if: { required: ['type'], properties: { type: { enum: ['function', 'mcp'] } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: unionBy('type', FunctionTool, McpTool),
})

/** A tool that the model must call, or `allowed_tools`: the ones that it may call. */
const toolChoiceMembers = {
  type: Text,
  name: Text,
  function: nullable(Type.Object({ name: Text })),
  server_label: Text,
}
const ToolChoice = Type.Object({
  ...toolChoiceMembers,
  mode: choice('auto', 'required'),
  tools: nullable(Type.Array(Type.Object(toolChoiceMembers))),
})
export type ToolChoice = Static<typeof ToolChoice>

const TextFormat = unionBy(
  'type',
  Type.Object({ type: Type.Literal('text') }),
  Type.Object({ type: Type.Literal('json_object') }),
  Type.Object({
    type: Type.Literal('json_schema'),
    name: nullable(Type.String({ pattern: '^[A-Za-z0-9_-]{0,64}$' })),
    schema: nullable(Anything),
    description: Text,
    strict: Flag,
  }),
)

const Metadata = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  description: 'At most 16 properties.',
  maxProperties: 16,
  propertyNames: { maxLength: 64 },
  additionalProperties: { type: 'string', maxLength: 512 },
})

const CreateMembers = {
  model: Type.String({ minLength: 1 }),
  input: Type.Union([Type.String(), Type.Array(InputItem, { maxItems: 100_000 })]),
  instructions: Text,
  max_output_tokens: count,
  max_tool_calls: count,
  temperature: numberFrom(0, 2),
  top_p: numberFrom(0, 1),
  stream: Flag,
  stream_options: nullable(Anything),
  store: Flag,
  background: Flag,
  generate: nullable(
    Type.Boolean({
      description: 'False prepares a turn: no model runs and the output is empty. Default true.',
    }),
  ),
  tools: nullable(Type.Array(Tool, { maxItems: 1_024 })),
  tool_choice: nullable(Type.Union([Type.String(), ToolChoice])),
  parallel_tool_calls: Flag,
  previous_response_id: Text,
  conversation: nullable(Type.Union([Type.String(), Type.Object({ id: Text })])),
  reasoning: nullable(
    Type.Object({
      effort: nullable(
        Type.String(),
        '`none`, `low`, `medium`, `high` or another level that the model knows.',
      ),
      summary: nullable(Type.String(), '`auto`, `concise`, `detailed`.'),
      generate_summary: Text,
    }),
  ),
  text: nullable(Type.Object({ format: nullable(TextFormat), verbosity: Text })),
  metadata: nullable(Metadata),
  include: nullable(Type.Array(Type.String())),
  context_management: nullable(
    Type.Array(Type.Object({ type: Text, compact_threshold: count }), { maxItems: 1_024 }),
  ),
  user: Text,
  prompt_cache_key: nullable(Type.String({ maxLength: 64 })),
  safety_identifier: nullable(Type.String({ maxLength: 64 })),
  service_tier: Text,
  truncation: nullable(Type.String(), '`auto` or `disabled`.'),
  top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  top_k: nullable(Type.Integer({ minimum: -1 })),
  min_p: numberFrom(0, 1),
  repetition_penalty: nullable(Type.Number({ exclusiveMinimum: 0, maximum: 2 })),
  frequency_penalty: numberFrom(-2, 2),
  presence_penalty: numberFrom(-2, 2),
  stop: nullable(
    Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }), { maxItems: 4 })]),
  ),
  prompt: Type.Optional(
    Type.Unknown({ description: 'Only workers that speak the format have stored prompts.' }),
  ),
}

const open = {
  additionalProperties: true,
  description:
    'Members beyond these are passed on to workers that speak the format; for others, the header x-weir-warning names them.',
}

export const CreateBody = Type.Object(CreateMembers, open)
export type CreateBody = Static<typeof CreateBody>
export const createBody = defineValidator(CreateBody, toBodyError)

/** Input may be missing where there is a past. */
export const PastBody = Type.Object({ ...CreateMembers, input: nullable(CreateMembers.input) }, open)

/** A problem of a body as the error that clients of the format know. */
function toBodyError(problem: FieldProblem): GatewayError {
  const { field, kind } = problem
  const text = problemText(problem)
  const path = bracketPath(field)
  const param = { param: path }
  if (path === '') return responsesErrors.invalid_type('body', 'must be a JSON object')
  if (kind === 'missing' || (kind === 'empty' && !path.startsWith('stop')))
    return responsesErrors.missing_required_parameter.with(param, path)
  if (kind === 'type') return responsesErrors.invalid_type.with(param, path, text)
  if (path.startsWith('metadata'))
    return responsesErrors.invalid_metadata.with({ param: 'metadata' }, path, text)
  return responsesErrors.invalid_value.with(param, path, text)
}

export const ResponseObject = Type.Object(
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

export const DeletedResponse = Type.Object({
  id: Type.String(),
  object: Type.Literal('response.deleted'),
  deleted: Type.Literal(true),
})

export const CompactedResponse = Type.Object({
  id: Type.String(),
  object: Type.Literal('response.compaction'),
  created_at: Type.Integer(),
  output: Type.Array(Anything),
  usage: Anything,
})
