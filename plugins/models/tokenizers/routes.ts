/** The tokenizer routes: HTTP in and out only; commands run on control. */
import {
  adminErrorFormat,
  apiErrorFormat,
  defineValidator,
  type ErrorFormat,
  type Host,
  type RequestContext,
  type RouteDefinition,
} from '#kernel'
import { knownMembers, warnOfUnread } from '#shared'
import {
  AddTokenizer,
  type Asker,
  RemoveTokenizer,
  StatusOfTokenizer,
  type TokenizerStatus,
} from './commands.ts'
import { tokenizerErrors } from './errors.ts'
import type { ServedTokenizer, Service } from './service.ts'
import { toTemplateReport } from './template-report.ts'
import {
  AddTokenizerSchema,
  type Detokenize,
  DetokenizeResponseSchema,
  DetokenizeSchema,
  RemovedSchema,
  type Tokenize,
  TokenizeResponseSchema,
  TokenizerDetailsSchema,
  TokenizerListSchema,
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
const TOKENIZE_MEMBERS = knownMembers(TokenizeSchema)
const DETOKENIZE_MEMBERS = knownMembers(DetokenizeSchema)

export function tokenizerRoutes(host: Host, service: Service): readonly RouteDefinition[] {
  const notFound = { 404: { description: 'No such tokenizer, or not yet loaded.' } }
  return [
    {
      ...admin,
      method: 'POST',
      path: '/v1/tokenizers',
      handler: async (ctx) => {
        const body = ctx.bodyJson()
        const status = await host.command(AddTokenizer, { body, asker: askerOf(ctx) })
        warnOfUnread(ctx, body, knownMembers(AddTokenizerSchema))
        ctx.json(202, toWire({ ...status, state: 'pending', vocabSize: null }))
      },
      docs: {
        summary: 'Load a tokenizer in the background',
        tag,
        body: AddTokenizerSchema,
        responses: {
          202: { description: 'Accepted; poll the status.', schema: TokenizerStatusSchema },
          400: { description: 'The path is not allowed: plugins.tokenizers.roots is empty.' },
          409: { description: 'A tokenizer with this name is loaded.' },
          503: { description: 'The limit of tokenizers is reached, or the mesh cannot be changed now.' },
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
        responses: { 200: { description: 'Loaded tokenizers, oldest first.', schema: TokenizerListSchema } },
      },
    },
    {
      ...admin,
      method: 'GET',
      path: '/v1/tokenizers/:tokenizer_id',
      handler: (ctx) => ctx.json(200, toDetails(byIdFirst(service, ctx.param('tokenizer_id')))),
      docs: {
        summary: 'Get a loaded tokenizer by id or name',
        tag,
        responses: {
          200: {
            description: 'The tokenizer, with what its chat templates expect.',
            schema: TokenizerDetailsSchema,
          },
          ...notFound,
        },
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
        summary: 'Get the loading state of a tokenizer',
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
      handler: async (ctx) => {
        const body = ctx.body(tokenizeValidator)
        warnOfUnread(ctx, body, TOKENIZE_MEMBERS)
        ctx.json(200, await tokenize(service, body))
      },
      docs: {
        summary: 'Convert text to token ids',
        tag,
        body: TokenizeSchema,
        responses: {
          200: {
            description: 'Token ids; a list of lists for a list of texts.',
            schema: TokenizeResponseSchema,
          },
        },
      },
    },
    {
      ...api,
      path: '/v1/detokenize',
      endpoint: 'detokenize',
      handler: (ctx) => {
        const body = ctx.body(detokenizeValidator)
        warnOfUnread(ctx, body, DETOKENIZE_MEMBERS)
        ctx.json(200, detokenize(service, body))
      },
      docs: {
        summary: 'Convert token ids to text',
        tag,
        body: DetokenizeSchema,
        responses: {
          200: {
            description: 'Text; a list of texts for a list of lists of ids.',
            schema: DetokenizeResponseSchema,
          },
        },
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

function toDetails(tokenizer: ServedTokenizer) {
  return { ...toRecord(tokenizer), chat_templates: tokenizer.reports.map(toTemplateReport) }
}

function toWire({ id, state, message, vocabSize }: TokenizerStatus) {
  const status = { id, status: state, message }
  return vocabSize === null ? status : { ...status, vocab_size: vocabSize }
}

function askerOf(ctx: RequestContext): Asker {
  return { principal: ctx.identity?.tenant ?? null, requestId: ctx.requestId }
}

const MAX_ID = 0xffff_ffff
/** Names that the message of an unknown one lists. */
const MAX_NAMES = 10

/** @throws tokenizer_unknown (400), tokenization_failed (500), tokenizer_busy (503) */
export async function tokenize(service: Service, { model, prompt }: Tokenize): Promise<object> {
  const tokenizer = forModel(service, model)
  if (typeof prompt === 'string') {
    const tokens = [...(await tokenizer.encode(prompt))]
    return { tokens, count: tokens.length, char_count: codePoints(prompt) }
  }
  const tokens = await Promise.all(prompt.map(async (text) => [...(await tokenizer.encode(text))]))
  return { tokens, count: tokens.map(({ length }) => length), char_count: prompt.map(codePoints) }
}

/** @throws tokenizer_unknown, token_id_out_of_range (400), detokenization_failed (500) */
export function detokenize(service: Service, request: Detokenize): object {
  const tokenizer = forModel(service, request.model)
  const { tokens } = request
  const skipSpecialTokens = request.skip_special_tokens ?? true
  const isBatch = Array.isArray(tokens[0])
  const lists = (isBatch ? tokens : [tokens]).map(toIds)
  const texts = lists.map((ids) => {
    const decoder = tokenizer.openDecoder({ skipSpecialTokens })
    let text = ''
    for (const id of ids) text += decoder.push(id)
    return text + decoder.end()
  })
  return { text: isBatch ? texts : texts[0] }
}

/** By name, then by id; none and `unknown` stand for the first. @throws tokenizer_unknown (400) */
function forModel(service: Service, model: string): ServedTokenizer {
  const [first] = service.list()
  const found = service.find(model) ?? (model === '' || model === 'unknown' ? first : undefined)
  if (found !== undefined) return found
  const names = service.list().map(({ name }) => name)
  const known = names.slice(0, MAX_NAMES).join(', ') + (names.length > MAX_NAMES ? ', …' : '')
  throw tokenizerErrors.tokenizer_unknown(model, known || 'none')
}

function toIds(list: unknown): readonly number[] {
  const isId = (id: unknown) => typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= MAX_ID
  const param = { param: 'tokens' }
  if (!Array.isArray(list)) throw tokenizerErrors.token_id_out_of_range.with(param, list)
  const wrong = list.findIndex((id) => !isId(id))
  if (wrong >= 0) throw tokenizerErrors.token_id_out_of_range.with(param, list[wrong])
  return list
}

function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return count
}
