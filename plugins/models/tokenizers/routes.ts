/** The tokenizer routes: HTTP in and out only; what they ask is decided on control. */
import {
  adminErrorFormat,
  apiErrorFormat,
  defineValidator,
  type ErrorFormat,
  type Host,
  type RequestContext,
  type RouteDefinition,
} from '#kernel'
import {
  AddTokenizer,
  type Asker,
  RemoveTokenizer,
  StatusOfTokenizer,
  type TokenizerStatus,
} from './commands.ts'
import { tokenizerErrors } from './errors.ts'
import type { ServedTokenizer, Service } from './service.ts'
import { detokenize, tokenize } from './tokenize.ts'
import {
  AddTokenizerSchema,
  DetokenizeReplySchema,
  DetokenizeSchema,
  RemovedSchema,
  TokenizeReplySchema,
  TokenizerListSchema,
  TokenizerRecordSchema,
  TokenizerStatusSchema,
  TokenizeSchema,
} from './wire.ts'

/** Types that these routes name otherwise than by the kind of error. */
const TYPE_OF_CODE: ReadonlyMap<string, string> = new Map([
  ['tokenizer_not_found', 'tokenizer_not_found'],
  ['tokenizer_unknown', 'tokenizer_not_found'],
  ['tokenization_failed', 'tokenization_error'],
  ['detokenization_failed', 'detokenization_error'],
])

function withTypes(format: ErrorFormat): ErrorFormat {
  return {
    ...format,
    body: (error, request) => {
      const shown = format.body(error, request) as { readonly error: object }
      const type = TYPE_OF_CODE.get(error.code)
      return type === undefined ? shown : { error: { ...shown.error, type } }
    },
  }
}

const admin = { access: 'admin', errors: withTypes(adminErrorFormat), endpoint: 'tokenizers' } as const
const api = { access: 'api', errors: withTypes(apiErrorFormat), method: 'POST' } as const
const tag = 'Tokenizers'

const tokenizeValidator = defineValidator(TokenizeSchema)
const detokenizeValidator = defineValidator(DetokenizeSchema)

export function tokenizerRoutes(host: Host, service: Service): readonly RouteDefinition[] {
  const notFound = { 404: { description: 'No such tokenizer, or not loaded yet.' } }
  return [
    {
      ...admin,
      method: 'POST',
      path: '/v1/tokenizers',
      handler: async (ctx) => {
        const status = await host.command(AddTokenizer, { body: ctx.bodyJson(), asker: askerOf(ctx) })
        ctx.json(202, toWire({ ...status, state: 'pending', vocabSize: null }))
      },
      docs: {
        summary: 'Load a tokenizer in the background',
        tag,
        body: AddTokenizerSchema,
        responses: {
          202: { description: 'Accepted; ask for its status.', schema: TokenizerStatusSchema },
          400: { description: 'The path may not be named: plugins.tokenizers.roots is empty.' },
          409: { description: 'The name is taken.' },
        },
      },
    },
    {
      ...admin,
      method: 'GET',
      path: '/v1/tokenizers',
      handler: (ctx) => ctx.json(200, { tokenizers: service.list().map(toRecord) }),
      docs: {
        summary: 'List loaded tokenizers',
        tag,
        responses: { 200: { description: 'In the order of adding.', schema: TokenizerListSchema } },
      },
    },
    {
      ...admin,
      method: 'GET',
      path: '/v1/tokenizers/:tokenizer_id',
      handler: (ctx) => ctx.json(200, toRecord(byIdFirst(service, ctx.param('tokenizer_id')))),
      docs: {
        summary: 'A loaded tokenizer, by id or name',
        tag,
        responses: { 200: { description: 'The tokenizer.', schema: TokenizerRecordSchema }, ...notFound },
      },
    },
    {
      ...admin,
      method: 'GET',
      path: '/v1/tokenizers/:tokenizer_id/status',
      handler: async (ctx) => {
        const id = ctx.param('tokenizer_id')
        const status = await host.command(StatusOfTokenizer, id)
        if (status === null) throw tokenizerErrors.tokenizer_not_found(id)
        ctx.json(200, toWire(status))
      },
      docs: {
        summary: 'How loading goes',
        tag,
        responses: { 200: { description: 'Its state.', schema: TokenizerStatusSchema }, ...notFound },
      },
    },
    {
      ...admin,
      method: 'DELETE',
      path: '/v1/tokenizers/:tokenizer_id',
      handler: async (ctx) => {
        const id = ctx.param('tokenizer_id')
        const isRemoved = await host.command(RemoveTokenizer, { idOrName: id, asker: askerOf(ctx) })
        if (!isRemoved) throw tokenizerErrors.tokenizer_not_found(id)
        ctx.json(200, { success: true, message: `tokenizer ${id} was removed` })
      },
      docs: {
        summary: 'Remove a loaded tokenizer',
        tag,
        responses: { 200: { description: 'Removed.', schema: RemovedSchema }, ...notFound },
      },
    },
    {
      ...api,
      path: '/v1/tokenize',
      endpoint: 'tokenize',
      handler: async (ctx) => ctx.json(200, await tokenize(service, ctx.body(tokenizeValidator))),
      docs: {
        summary: 'Text to token ids',
        tag,
        body: TokenizeSchema,
        responses: { 200: { description: 'Lists for a list of texts.', schema: TokenizeReplySchema } },
      },
    },
    {
      ...api,
      path: '/v1/detokenize',
      endpoint: 'detokenize',
      handler: (ctx) => ctx.json(200, detokenize(service, ctx.body(detokenizeValidator))),
      docs: {
        summary: 'Token ids to text',
        tag,
        body: DetokenizeSchema,
        responses: { 200: { description: 'A list for lists of ids.', schema: DetokenizeReplySchema } },
      },
    },
  ]
}

/** @throws tokenizer_not_found (404) */
function byIdFirst(service: Service, idOrName: string): ServedTokenizer {
  const found = service.list().find(({ id }) => id === idOrName) ?? service.find(idOrName)
  if (found === undefined) throw tokenizerErrors.tokenizer_not_found(idOrName)
  return found
}

function toRecord({ id, name, source, vocabSize }: ServedTokenizer) {
  return { id, name, source, vocab_size: vocabSize }
}

function toWire({ id, state, message, vocabSize }: TokenizerStatus) {
  const status = { id, status: state, message }
  return vocabSize === null ? status : { ...status, vocab_size: vocabSize }
}

function askerOf(ctx: RequestContext): Asker {
  return { principal: ctx.identity?.tenant ?? null, requestId: ctx.requestId }
}
