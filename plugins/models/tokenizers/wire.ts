/** Shapes of the tokenizer routes. */
import { type Static, Type } from '#kernel'

const id = Type.String({ format: 'uuid' })

export const AddTokenizerSchema = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 1_024,
    description: 'Unique name, by which requests select the tokenizer.',
  }),
  source: Type.String({
    minLength: 1,
    maxLength: 4_096,
    description:
      'Path of a folder or file on the gateway’s machine, inside plugins.tokenizers.roots; or weir:sample. In a mesh, every gateway loads it from this path of its own machine.',
  }),
  chat_template_path: Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: 4_096 }), Type.Null()], {
      description:
        'A .jinja or .json file inside plugins.tokenizers.roots, in place of the template that comes with the tokenizer.',
    }),
  ),
})

const state = Type.Union(['pending', 'processing', 'completed', 'failed'].map((name) => Type.Literal(name)))

export const TokenizerStatusSchema = Type.Object({
  id,
  status: state,
  message: Type.String(),
  vocab_size: Type.Optional(Type.Integer({ description: 'Present once the tokenizer is loaded.' })),
})

export const TokenizerRecordSchema = Type.Object({
  id,
  name: Type.String(),
  source: Type.String(),
  vocab_size: Type.Integer(),
})

const ChatTemplateSchema = Type.Object({
  name: Type.String(),
  content: Type.Union([Type.Literal('string'), Type.Literal('parts')], {
    description: 'How the template takes the content of a message.',
  }),
  empty_content: Type.Union([Type.Literal('empty'), Type.Literal('null')], {
    description: 'Content of messages that have only tool calls.',
  }),
  tool_arguments: Type.Union([Type.Literal('value'), Type.Literal('text')], {
    description: 'Arguments of tool calls, as values or as JSON text.',
  }),
  developer_role: Type.Union([Type.Literal('developer'), Type.Literal('system')], {
    description: 'Role of developer messages.',
  }),
  refused: Type.Array(Type.Object({ conversation: Type.String(), reason: Type.String() }), {
    description: 'Kinds of conversations that the template refuses, and why; found by trials.',
  }),
})

export const TokenizerDetailsSchema = Type.Object({
  ...TokenizerRecordSchema.properties,
  chat_templates: Type.Array(ChatTemplateSchema),
})

export const TokenizerListSchema = Type.Object({ tokenizers: Type.Array(TokenizerRecordSchema) })

export const RemovedSchema = Type.Object({ success: Type.Boolean(), message: Type.String() })

const model = Type.String({
  description: 'Name or id of a tokenizer; empty or `unknown` selects the first one.',
})

/** Most texts or token lists of one request. */
const MAX_BATCH = 2_048

export const TokenizeSchema = Type.Object({
  model,
  prompt: Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: MAX_BATCH })]),
})
export type Tokenize = Static<typeof TokenizeSchema>

export const TokenizeResponseSchema = Type.Object({
  tokens: Type.Array(Type.Union([Type.Integer(), Type.Array(Type.Integer())])),
  count: Type.Union([Type.Integer(), Type.Array(Type.Integer())]),
  char_count: Type.Union([Type.Integer(), Type.Array(Type.Integer())], {
    description: 'Number of Unicode code points.',
  }),
})

// Lists of a million ids are checked in the handler, at a hundredth of the validator's cost.
export const DetokenizeSchema = Type.Object({
  model,
  tokens: Type.Array(Type.Unknown(), { description: 'Ids, or lists of ids.' }),
  skip_special_tokens: Type.Optional(
    Type.Union([Type.Boolean(), Type.Null()], { description: 'Default true.' }),
  ),
})
export type Detokenize = Static<typeof DetokenizeSchema>

export const DetokenizeResponseSchema = Type.Object({
  text: Type.Union([Type.String(), Type.Array(Type.String())]),
})
