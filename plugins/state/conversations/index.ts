/** The conversations plugin: items that outlive single responses, stored by the history plugin. */
import {
  apiErrorFormat,
  definePlugin,
  History,
  type HistoryService,
  type RouteDefinition,
  Type,
} from '#kernel'
import { ConversationHandlers } from './handlers.ts'
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
  Type.Array(Type.String(), { description: 'Further fields, such as `message.output_text.logprobs`.' }),
)

export default definePlugin({
  manifest: {
    name: 'conversations',
    version: '0.1.0',
    description: 'Conversations and their items over the API.',
    uses: [History],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    for (const route of conversationRoutes(host.use(History))) host.route(route)
  },
})

function conversationRoutes({ conversations }: HistoryService): readonly RouteDefinition[] {
  const handlers = new ConversationHandlers(conversations)
  return [
    {
      ...base,
      method: 'POST',
      path: '/v1/conversations',
      handler: (ctx) => handlers.create(ctx),
      docs: {
        summary: 'Create a conversation',
        tag,
        body: Type.Optional(ConversationCreateSchema),
        responses: { 200: conversation, 400: refused, 429: tooMany, 507: full },
      },
    },
    {
      ...base,
      method: 'GET',
      path: ONE,
      handler: (ctx) => handlers.get(ctx),
      docs: { summary: 'Show a conversation', tag, responses: { 200: conversation, 404: noConversation } },
    },
    {
      ...base,
      method: 'POST',
      path: ONE,
      handler: (ctx) => handlers.update(ctx),
      docs: {
        summary: 'Merge metadata into a conversation',
        tag,
        body: Type.Optional(ConversationUpdateSchema),
        responses: { 200: conversation, 400: refused, 404: noConversation },
      },
    },
    {
      ...base,
      method: 'DELETE',
      path: ONE,
      handler: (ctx) => handlers.remove(ctx),
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
      ...base,
      method: 'GET',
      path: ITEMS,
      handler: (ctx) => handlers.listItems(ctx),
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
      ...base,
      method: 'POST',
      path: ITEMS,
      handler: (ctx) => handlers.addItems(ctx),
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
      ...base,
      method: 'GET',
      path: ITEM,
      handler: (ctx) => handlers.getItem(ctx),
      docs: {
        summary: 'Show an item of a conversation',
        tag,
        query: { include },
        responses: { 200: { description: 'The item.', schema: ConversationItemSchema }, 404: noItem },
      },
    },
    {
      ...base,
      method: 'DELETE',
      path: ITEM,
      handler: (ctx) => handlers.removeItem(ctx),
      docs: {
        summary: 'Remove an item from a conversation',
        tag,
        responses: { 200: conversation, 404: noItem },
      },
    },
  ]
}
