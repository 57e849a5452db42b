/** The inference routes of workers: bytes are relayed to workers that take the format, and generated for with others. @hot */
import {
  defineValidator,
  type EmbeddingService,
  Embeddings,
  Generations,
  type Host,
  type RequestContext,
  type ResponseFormat,
  type RouteDefinition,
  type TSchema,
  Type,
  type Validator,
  type WorkerEntry,
} from '#kernel'
import type { ChatConfig } from '../config.ts'
import { chatErrors } from '../errors.ts'
import { ChatRequest, ChatResponse } from '../wire/chat.ts'
import {
  CompletionRequest,
  CompletionResponse,
  GenerateRequest,
  GenerationResponse,
} from '../wire/completion.ts'
import { ClassifyRequest, ClassifyResponse, EmbeddingRequest, EmbeddingResponse } from '../wire/embedding.ts'
import { chatFormat, embeddingFormat } from './chat-format.ts'
import { serveClassify, serveEmbedding } from './embeddings.ts'
import { generateFormat } from './generate-format.ts'
import { checkChatRules, checkCompletionRules, checkGenerateRules } from './request-rules.ts'
import { serveChat } from './serve-chat.ts'
import { serveCompletion } from './serve-completion.ts'
import { serveGenerate } from './serve-generate.ts'
import { inferenceErrorFormat } from './stream-end.ts'

interface ServeParts {
  readonly host: Host
  readonly config: ChatConfig
  readonly generations: Generations
}

interface InferenceRow {
  readonly path: string
  /** Label in metrics. */
  readonly endpoint: 'chat' | 'completions' | 'generate' | 'embeddings' | 'classify'
  /** Of generated request ids. */
  readonly requestIdPrefix: string
  /** Of relayed responses. */
  readonly format: ResponseFormat
  readonly summary: string
  /** Compiled once for all gateways of the thread: the chat schema takes about 100 ms. */
  readonly body: Validator<unknown>
  /** Checks the rules between the members of a valid body. */
  readonly checkRules?: (request: never) => void
  /** Answers by a generation or an embedding. @param model to generate for */
  readonly serve: (parts: ServeParts, ctx: RequestContext, model: string) => void | Promise<void>
  readonly response: TSchema
  readonly streams: boolean
}

const rows: readonly InferenceRow[] = [
  {
    path: '/v1/chat/completions',
    endpoint: 'chat',
    requestIdPrefix: 'chatcmpl-',
    format: chatFormat,
    summary: 'Complete a chat',
    body: defineValidator(ChatRequest),
    checkRules: checkChatRules,
    serve: (parts, ctx, model) =>
      serveChat(parts.generations, ctx, ctx.bodyJson() as ChatRequest, {
        mayRelay: mayRelayChat(parts, ctx, model),
        opensAfterMs: parts.config.streamOpensAfterMs,
      }),
    response: ChatResponse,
    streams: true,
  },
  {
    path: '/v1/completions',
    endpoint: 'completions',
    requestIdPrefix: 'cmpl-',
    format: chatFormat,
    summary: 'Complete a text',
    body: defineValidator(CompletionRequest),
    checkRules: checkCompletionRules,
    serve: ({ generations, config }, ctx) =>
      serveCompletion(generations, ctx, ctx.bodyJson() as CompletionRequest, config.streamOpensAfterMs),
    response: CompletionResponse,
    streams: true,
  },
  {
    path: '/generate',
    endpoint: 'generate',
    requestIdPrefix: 'gnt-',
    format: generateFormat,
    summary: 'Generate in the native format of the engine',
    body: defineValidator(GenerateRequest),
    checkRules: checkGenerateRules,
    serve: ({ generations, config }, ctx, model) =>
      serveGenerate(generations, ctx, ctx.bodyJson() as GenerateRequest, model, config.streamOpensAfterMs),
    response: Type.Union([GenerationResponse, Type.Array(GenerationResponse)]),
    streams: true,
  },
  {
    path: '/v1/embeddings',
    endpoint: 'embeddings',
    requestIdPrefix: 'req-',
    format: embeddingFormat,
    summary: 'Embed texts',
    body: defineValidator(EmbeddingRequest),
    serve: ({ host }, ctx) => serveEmbedding(embeddingsOf(host), ctx, ctx.bodyJson() as EmbeddingRequest),
    response: EmbeddingResponse,
    streams: false,
  },
  {
    path: '/v1/classify',
    endpoint: 'classify',
    requestIdPrefix: 'req-',
    format: embeddingFormat,
    summary: 'Classify texts',
    body: defineValidator(ClassifyRequest),
    serve: ({ host }, ctx) => serveClassify(embeddingsOf(host), ctx, ctx.bodyJson() as ClassifyRequest),
    response: ClassifyResponse,
    streams: false,
  },
]

export function inferenceRoutes(host: Host, config: ChatConfig): RouteDefinition[] {
  const parts = { host, config, generations: host.use(Generations) }
  return rows.map((row) => toRoute(row, handlerOf(row, parts)))
}

type WorkerFilter = (worker: WorkerEntry) => boolean

/** Whether workers that take chats may get the bytes of one that must be generated for other workers of the model. */
function mayRelayChat(
  { host, config, generations }: ServeParts,
  ctx: RequestContext,
  model: string,
): boolean {
  if (config.chat !== 'relay' || generations.mustGenerate(ctx)) return false
  return host.balance.workersOf(model).some(({ apis }) => apis.includes('chat'))
}

/**
 * Filters the workers of a model that take an API; undefined if some of the workers take token ids instead, which all serve it.
 *
 * @throws embeddings_unsupported (501) if no worker of the model takes it
 */
function takersOf(balance: Host['balance'], model: string, takes: WorkerFilter): WorkerFilter | undefined {
  const workers = balance.workersOf(model)
  if (workers.length === 0 || workers.some(({ apis }) => apis.length === 0)) return
  if (workers.some(takes)) return takes
  throw chatErrors.embeddings_unsupported()
}

/** @throws embeddings_unsupported (501) */
function embeddingsOf(host: Host): EmbeddingService {
  const found = host.find(Embeddings)
  if (found === undefined) throw chatErrors.embeddings_unsupported()
  return found
}

/** Bytes are relayed if every worker of the model takes them; otherwise the body is checked and generated for. */
function handlerOf(row: InferenceRow, parts: ServeParts): RouteDefinition['handler'] {
  const { path, endpoint, streams, format, body, checkRules } = row
  const { host, config, generations } = parts
  const needsModel = endpoint !== 'generate'
  const neverRelays = endpoint === 'chat' && config.chat === 'normalize'
  const checksAll = config.validate === 'full'
  const takes: WorkerFilter = ({ apis }) => apis.includes(endpoint)
  // Compiles now.
  if (checksAll) body.problem(null)
  return (ctx) => {
    const { model, stream } = ctx.peek()
    const isUnnamed = model === null || model === '' || (!needsModel && model === 'unknown')
    if (isUnnamed && needsModel) throw chatErrors.missing_model.with({ param: 'model' })
    const named = neverRelays
      ? model
      : generations.modelToGenerate(isUnnamed ? null : model, endpoint, streams ? ctx : undefined)
    if (named !== null || checksAll) {
      const request = ctx.body(body)
      checkRules?.(request as never)
    }
    let accepts: WorkerFilter | undefined
    if (named !== null && !streams) accepts = takersOf(host.balance, named, takes)
    if (named === null && isUnnamed) accepts = takes
    if (named !== null && accepts === undefined) return row.serve(parts, ctx, named)
    host.upstream.relay(ctx, {
      model: model === '' ? null : model,
      stream: streams && stream,
      path,
      format,
      accepts,
      ...(streams && { opensAfterMs: config.streamOpensAfterMs }),
    })
  }
}

function toRoute(row: InferenceRow, handler: RouteDefinition['handler']): RouteDefinition {
  const { path, endpoint, requestIdPrefix, summary, body, response, streams } = row
  const description = streams ? 'The answer, or server-sent events with `stream`.' : 'The answer.'
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
      body: body.schema,
      responses: { 200: { description, schema: response, streams }, ...failures },
    },
  }
}

export const failures: RouteDefinition['docs']['responses'] = {
  400: { description: 'The body is not a JSON object, or a field is missing or invalid.' },
  404: { description: 'No worker serves the model.' },
  413: { description: 'The body is too large.' },
  502: { description: 'The worker could not be reached, or its response was cut off.' },
  503: { description: 'No worker of the model is ready.' },
  504: { description: 'The worker did not respond in time.' },
}
