/** The conversation routes. */
import {
  apiErrorFormat,
  type ConversationHistory,
  type HistoryService,
  type RequestContext,
  type RouteDefinition,
  Type,
} from '#kernel'
import * as handlers from './handlers.ts'
import {
  ConversationCreateSchema,
  ConversationDeletedSchema,
  ConversationItemSchema,
  ConversationSchema,
  ConversationUpdateSchema,
  ItemListSchema,
  ItemsCreateSchema,
} from './wire.ts'

const base = { access: 'api', errors: apiErrorFormat, endpoint: 'conversations' } as const
const tag = 'Conversations'
const ONE = '/v1/conversations/:conversation_id'
const ITEMS = `${ONE}/items`
const ITEM = `${ITEMS}/:item_id`

const conversation = { description: 'The conversation.', schema: ConversationSchema }
const refused = { description: 'The request is wrong; `param` names the field.' }
const full = { description: 'The tenant has stored as many bytes as it may.' }
const tooMany = { description: 'The tenant has as many conversations as it may.' }
const noConversation = { description: 'No such conversation.' }
const noItem = { description: 'No such conversation, or no such item in it.' }
const include = Type.Optional(
  Type.String({ description: 'Further fields, such as `message.output_text.logprobs`.' }),
)

export function conversationRoutes({ conversations }: HistoryService): readonly RouteDefinition[] {
  const by = (handler: (ctx: RequestContext, conversations: ConversationHistory) => Promise<void>) => ({
    ...base,
    handler: (ctx: RequestContext) => handler(ctx, conversations),
  })
  return [
    {
      ...by(handlers.createConversation),
      method: 'POST',
      path: '/v1/conversations',
      docs: {
        summary: 'Create a conversation',
        tag,
        body: Type.Optional(ConversationCreateSchema),
        responses: { 200: conversation, 400: refused, 429: tooMany, 507: full },
      },
    },
    {
      ...by(handlers.getConversation),
      method: 'GET',
      path: ONE,
      docs: { summary: 'Show a conversation', tag, responses: { 200: conversation, 404: noConversation } },
    },
    {
      ...by(handlers.updateConversation),
      method: 'POST',
      path: ONE,
      docs: {
        summary: 'Merge metadata into a conversation',
        tag,
        body: Type.Optional(ConversationUpdateSchema),
        responses: { 200: conversation, 400: refused, 404: noConversation },
      },
    },
    {
      ...by(handlers.deleteConversation),
      method: 'DELETE',
      path: ONE,
      docs: {
        summary: 'Delete a conversation; items that responses own stay there',
        tag,
        responses: {
          200: { description: 'Deleted.', schema: ConversationDeletedSchema },
          404: noConversation,
        },
      },
    },
    {
      ...by(handlers.listItems),
      method: 'GET',
      path: ITEMS,
      docs: {
        summary: 'List items of a conversation',
        tag,
        query: {
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100 })),
          order: Type.Optional(Type.Union([Type.Literal('asc'), Type.Literal('desc')], { default: 'desc' })),
          after: Type.Optional(Type.String({ description: 'Id of the item before the first one wanted.' })),
          include,
        },
        responses: {
          200: { description: 'A page.', schema: ItemListSchema },
          400: refused,
          404: noConversation,
        },
      },
    },
    {
      ...by(handlers.createItems),
      method: 'POST',
      path: ITEMS,
      docs: {
        summary: 'Add up to 20 items, all or none',
        tag,
        body: ItemsCreateSchema,
        query: { include },
        responses: {
          200: { description: 'The new items.', schema: ItemListSchema },
          400: refused,
          404: noItem,
          507: full,
        },
      },
    },
    {
      ...by(handlers.getItem),
      method: 'GET',
      path: ITEM,
      docs: {
        summary: 'Show an item of a conversation',
        tag,
        query: { include },
        responses: { 200: { description: 'The item.', schema: ConversationItemSchema }, 404: noItem },
      },
    },
    {
      ...by(handlers.deleteItem),
      method: 'DELETE',
      path: ITEM,
      docs: {
        summary: 'Remove an item from a conversation',
        tag,
        responses: { 200: conversation, 404: noItem },
      },
    },
  ]
}
