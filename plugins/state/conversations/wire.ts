/** What the conversation routes take and give. */
import { Type } from '#kernel'

const Metadata = Type.Record(Type.String(), Type.String(), { description: 'At most 16 properties.' })

const Item = Type.Object(
  { type: Type.String() },
  { additionalProperties: true, description: 'An item; its members depend on its type.' },
)

export const ConversationCreateSchema = Type.Object({
  metadata: Type.Optional(Type.Union([Metadata, Type.Null()])),
  items: Type.Optional(Type.Union([Type.Array(Item, { maxItems: 20 }), Type.Null()])),
})

export const ConversationUpdateSchema = Type.Object({
  metadata: Type.Optional(
    Type.Union([
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]), {
        description: 'Merged with what is there; null removes a key.',
      }),
      Type.Null(),
    ]),
  ),
})

export const ConversationSchema = Type.Object({
  id: Type.String({ description: 'Begins with `conv_`.' }),
  object: Type.Literal('conversation'),
  created_at: Type.Integer({ description: 'Seconds since 1970.' }),
  metadata: Metadata,
})

export const ConversationDeletedSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('conversation.deleted'),
  deleted: Type.Literal(true),
})

export const ItemsCreateSchema = Type.Object({ items: Type.Array(Item, { minItems: 1, maxItems: 20 }) })

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
