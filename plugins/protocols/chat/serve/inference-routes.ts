/** The relayed inference routes, one row each: their bytes go to a worker and its answer comes back untouched. @hot */
import {
  defineValidator,
  type EmbeddingService,
  Embeddings,
  Generations,
  type Host,
  type RequestContext,
  type RouteDefinition,
  type Static,
  type TSchema,
  Type,
} from '#kernel'
import type { ChatConfig } from '../config.ts'
import { chatErrors } from '../errors.ts'
import { ChatReply, ChatRequest } from '../wire/chat.ts'
import { ClassifyReply, ClassifyRequest } from '../wire/classify.ts'
import { CompletionReply, CompletionRequest } from '../wire/completion.ts'
import { EmbeddingReply, EmbeddingRequest } from '../wire/embedding.ts'
import { GenerateReply, GenerateRequest } from '../wire/generate.ts'
import { checkChatRules } from './chat/chat-rules.ts'
import { serveChat } from './chat/serve-chat.ts'
import { checkCompletionRules } from './completions/completion-rules.ts'
import { serveCompletion } from './completions/serve-completion.ts'
import { serveClassify } from './embeddings/serve-classify.ts'
import { serveEmbedding } from './embeddings/serve-embedding.ts'
import { checkGenerateRules } from './generate/generate-rules.ts'
import { serveGenerate } from './generate/serve-generate.ts'
import { inferenceErrorFormat } from './generation-streams.ts'
import { judgeStream } from './is-complete-stream.ts'

interface InferenceRow {
  readonly path: string
  /** Label in metrics. */
  readonly endpoint: string
  /** Of generated request ids. */
  readonly requestIdPrefix: string
  readonly needsModel: boolean
  readonly summary: string
  readonly body: TSchema
  readonly reply: TSchema
  readonly streams: boolean
  /** Makes the check of `validate: full`. */
  readonly makeCheck: () => FullCheck
}

/** Everything that is documented about a body. @throws 400 naming the field or the rule */
type FullCheck = (ctx: RequestContext) => void

/** A schema, and the rules that a schema cannot say. */
function fullCheck<T>(schema: TSchema, checkRules?: (request: T) => void): () => FullCheck {
  return () => {
    const validator = defineValidator(schema)
    // Compiles it now: the chat schema takes some 100 ms, which no request should wait for.
    validator.problem(null)
    return (ctx) => {
      const request = ctx.body(validator) as T
      checkRules?.(request)
    }
  }
}

const CHAT_PATH = '/v1/chat/completions'

const rows: readonly InferenceRow[] = [
  {
    path: CHAT_PATH,
    endpoint: 'chat',
    requestIdPrefix: 'chatcmpl-',
    needsModel: true,
    summary: 'Complete a chat',
    body: ChatRequest,
    reply: ChatReply,
    streams: true,
    makeCheck: fullCheck(ChatRequest, checkChatRules),
  },
  {
    path: '/v1/completions',
    endpoint: 'completions',
    requestIdPrefix: 'cmpl-',
    needsModel: true,
    summary: 'Complete a text',
    body: CompletionRequest,
    reply: CompletionReply,
    streams: true,
    makeCheck: fullCheck(CompletionRequest, checkCompletionRules),
  },
  {
    path: '/generate',
    endpoint: 'generate',
    requestIdPrefix: 'gnt-',
    needsModel: false,
    summary: 'Generate in the native format of the engine',
    body: GenerateRequest,
    reply: Type.Union([GenerateReply, Type.Array(GenerateReply)]),
    streams: true,
    makeCheck: fullCheck(GenerateRequest, checkGenerateRules),
  },
  {
    path: '/v1/embeddings',
    endpoint: 'embeddings',
    requestIdPrefix: 'req-',
    needsModel: true,
    summary: 'Embed texts',
    body: EmbeddingRequest,
    reply: EmbeddingReply,
    streams: false,
    makeCheck: fullCheck(EmbeddingRequest),
  },
  {
    path: '/v1/classify',
    endpoint: 'classify',
    requestIdPrefix: 'req-',
    needsModel: true,
    summary: 'Classify texts',
    body: ClassifyRequest,
    reply: ClassifyReply,
    streams: false,
    makeCheck: fullCheck(ClassifyRequest),
  },
]

export function inferenceRoutes(host: Host, config: ChatConfig): RouteDefinition[] {
  return rows.map((row) => {
    const check = config.validate === 'full' ? row.makeCheck() : null
    return toRoute(row, handlerOf(host, row, check, config))
  })
}

function handlerOf(
  host: Host,
  row: InferenceRow,
  check: FullCheck | null,
  config: ChatConfig,
): RouteDefinition['handler'] {
  if (row.endpoint === 'chat') return chatHandler(host, row, check, config.chat)
  if (row.endpoint === 'completions')
    return frontHandler(host, row, check, (generations, ctx) =>
      serveCompletion(generations, ctx, ctx.bodyJson() as CompletionRequest),
    )
  if (row.endpoint === 'generate')
    return frontHandler(host, row, check, (generations, ctx, model) =>
      serveGenerate(generations, ctx, ctx.bodyJson() as GenerateRequest, model),
    )
  if (row.endpoint === 'embeddings')
    return frontHandler(host, row, check, (_generations, ctx) =>
      serveEmbedding(embeddingsOf(host), ctx, ctx.bodyJson() as Static<typeof EmbeddingRequest>),
    )
  if (row.endpoint === 'classify')
    return frontHandler(host, row, check, (_generations, ctx) =>
      serveClassify(embeddingsOf(host), ctx, ctx.bodyJson() as Static<typeof ClassifyRequest>),
    )
  return relayHandler(host, row, check)
}

/** @throws embeddings_unsupported (501) */
function embeddingsOf(host: Host): EmbeddingService {
  const found = host.find(Embeddings)
  if (found === undefined) throw chatErrors.embeddings_unsupported()
  return found
}

/** As for chat: workers that take the format get the bytes; for others the request is read and generated. */
function frontHandler(
  host: Host,
  row: InferenceRow,
  check: FullCheck | null,
  serve: (generations: Generations, ctx: RequestContext, model: string | null) => void | Promise<void>,
): RouteDefinition['handler'] {
  const relay = relayHandler(host, row, check)
  const generations = host.use(Generations)
  let fullCheck = check
  return (ctx) => {
    const { model } = ctx.peek()
    const named = model === null || model === '' || model === 'unknown' ? anyModel(host, row.endpoint) : model
    if (named === null || (row.needsModel && named !== model) || isNative(host, named, row.endpoint))
      return relay(ctx)
    fullCheck ??= row.makeCheck()
    fullCheck(ctx)
    return serve(generations, ctx, named)
  }
}

/** True when every worker that serves the model takes the API itself, or nobody serves it. */
function isNative({ balance }: Host, model: string, api: string): boolean {
  return balance.takesApi(balance.canonicalModel(model), api)
}

/** Of a client that takes any worker: null where all of them take its bytes. */
function anyModel(host: Host, api: string): string | null {
  const others = host.balance.workers.filter(({ apis }) => !apis.includes(api))
  return others[0]?.models[0]?.id ?? null
}

/** Bytes are relayed where every worker of the model takes them; a model with other workers is generated for. */
function chatHandler(
  host: Host,
  row: InferenceRow,
  check: FullCheck | null,
  mode: ChatConfig['chat'],
): RouteDefinition['handler'] {
  const mayRelay = mode === 'relay'
  const generations = host.use(Generations)
  const relay = relayHandler(host, row, check)
  let fullCheck = check
  return (ctx) => {
    const { model } = ctx.peek()
    if (model === null || model === '' || (mayRelay && isNative(host, model, 'chat'))) return relay(ctx)
    fullCheck ??= row.makeCheck()
    fullCheck(ctx)
    return serveChat(generations, ctx, ctx.bodyJson() as ChatRequest, mayRelay)
  }
}

function relayHandler(host: Host, row: InferenceRow, check: FullCheck | null): RouteDefinition['handler'] {
  const { path, needsModel, endpoint } = row
  const judge = endpoint === 'chat' || endpoint === 'completions' ? judgeStream : undefined
  return (ctx) => {
    const { model, stream } = ctx.peek()
    if (needsModel && (model === null || model === ''))
      throw chatErrors.missing_model.with({ param: 'model' })
    if (check !== null) check(ctx)
    host.upstream.relay(ctx, { model: model === '' ? null : model, stream, path, judge })
  }
}

function toRoute(row: InferenceRow, handler: RouteDefinition['handler']): RouteDefinition {
  const { path, endpoint, requestIdPrefix, summary, body, reply, streams } = row
  const description = streams ? 'The answer; with `stream`, server-sent events.' : 'The answer.'
  return {
    method: 'POST',
    path,
    access: 'api',
    errors: inferenceErrorFormat,
    endpoint,
    requestIdPrefix,
    handler,
    docs: {
      summary,
      tag: 'Inference',
      body,
      responses: { 200: { description, schema: reply, streams }, ...failures },
    },
  }
}

export const failures: RouteDefinition['docs']['responses'] = {
  400: { description: 'The body is no JSON object, or a field is missing or wrong.' },
  404: { description: 'No worker serves the model.' },
  413: { description: 'The body is too large.' },
  502: { description: 'The worker could not be reached, or its answer broke off.' },
  503: { description: 'No worker that serves the model is ready.' },
  504: { description: 'The worker took too long.' },
}
