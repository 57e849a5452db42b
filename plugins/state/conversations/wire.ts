/**
 * Bodies of the conversations API. Each schema checks the body, gives its type and documents it; null counts as absent.
 * @source OpenAI API reference, Conversations
 */
import {
  defineValidator,
  type FieldProblem,
  type GatewayError,
  problemText,
  type Static,
  Type,
} from '#kernel'
import { bracketPath, InputItem, nullable } from '#shared'
import { conversationErrors } from './errors.ts'

const MAX_ITEMS = 20

const MetadataChanges = Type.Unsafe<Readonly<Record<string, string | null>>>({
  type: 'object',
  description: 'Merged with the metadata, of at most 16 properties; null removes a key.',
  propertyNames: { maxLength: 64 },
  additionalProperties: { type: ['string', 'null'], maxLength: 512 },
})
export type MetadataChanges = Static<typeof MetadataChanges>

export const ConversationCreateSchema = Type.Object({
  metadata: nullable(MetadataChanges),
  items: nullable(Type.Array(InputItem, { maxItems: MAX_ITEMS })),
})
export const conversationCreate = defineValidator(ConversationCreateSchema, toBodyError)

export const ConversationUpdateSchema = Type.Object({ metadata: nullable(MetadataChanges) })
export const conversationUpdate = defineValidator(ConversationUpdateSchema, toBodyError)

export const ItemsCreateSchema = Type.Object({
  items: Type.Array(InputItem, { minItems: 1, maxItems: MAX_ITEMS }),
})
export const itemsCreate = defineValidator(ItemsCreateSchema, toBodyError)

/** A problem of a body as the error that clients of the format know. */
function toBodyError(problem: FieldProblem): GatewayError {
  const { field, kind } = problem
  const text = problemText(problem)
  const path = bracketPath(field)
  const param = { param: path }
  if (path === '') return conversationErrors.json_parse_error()
  if (field.startsWith('metadata'))
    return conversationErrors.invalid_metadata.with({ param: 'metadata' }, path, text)
  if (field === 'items' && kind === 'value') return conversationErrors.too_many_items.with(param, MAX_ITEMS)
  if (kind === 'missing' || (field === 'items' && kind === 'empty'))
    return conversationErrors.missing_required_parameter.with(param, path, text)
  if (kind === 'type') return conversationErrors.invalid_type.with(param, path, text)
  return conversationErrors.invalid_value.with(param, path, text)
}

export const ConversationSchema = Type.Object({
  id: Type.String({ description: 'Begins with `conv_`.' }),
  object: Type.Literal('conversation'),
  created_at: Type.Integer({ description: 'Seconds since 1970.' }),
  metadata: Type.Record(Type.String(), Type.String(), { description: 'At most 16 properties.' }),
})

export const ConversationDeletedSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('conversation.deleted'),
  deleted: Type.Literal(true),
})

export const ConversationItemSchema = Type.Object(
  {
    id: Type.String(),
    type: Type.String(),
    created_at: Type.Integer({ description: 'Seconds since 1970.' }),
  },
  { additionalProperties: true },
)

export const ItemListSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(ConversationItemSchema),
  first_id: Type.Union([Type.String(), Type.Null()]),
  last_id: Type.Union([Type.String(), Type.Null()]),
  has_more: Type.Boolean(),
})
