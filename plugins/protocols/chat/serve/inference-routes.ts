/** The inference routes of workers: bytes are relayed to workers that take the format, and generated for with others. @hot */
import {
  defineValidator,
  type EmbeddingService,
  Embeddings,
  Generations,
  type Host,
  type RequestContext,
  type RouteDefinition,
  type TSchema,
  Type,
  type UsageReport,
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
import { serveClassify, serveEmbedding } from './embeddings.ts'
import { checkChatRules, checkCompletionRules, checkGenerateRules } from './request-rules.ts'
import { serveChat } from './serve-chat.ts'
import { serveCompletion } from './serve-completion.ts'
import { serveGenerate } from './serve-generate.ts'
import { checkStreamCompletion, inferenceErrorFormat } from './stream-end.ts'

interface InferenceRow {
  readonly path: string
  /** Label in metrics. */
  readonly endpoint: 'chat' | 'completions' | 'generate' | 'embeddings' | 'classify'
  /** Of generated request ids. */
  readonly requestIdPrefix: string
  /** Where workers report the usage. */
  readonly usage: UsageReport
  readonly summary: string
  readonly body: TSchema
  /** Checks the rules between the members of a valid body. */
  readonly checkRules?: (request: never) => void
  readonly reply: TSchema
  readonly streams: boolean
}

/** Checks every documented rule of a body. @throws 400 naming the field or the rule */
type FullCheck = (ctx: RequestContext) => void

/** Checks the schema, then the rules between fields. */
function makeCheck({ body, checkRules }: InferenceRow): FullCheck {
  const validator = defineValidator(body)
  // Compiles now: the chat schema takes about 100 ms.
  validator.problem(null)
  return (ctx) => {
    const request = ctx.body(validator)
    checkRules?.(request as never)
  }
}

const rows: readonly InferenceRow[] = [
  {
    path: '/v1/chat/completions',
    endpoint: 'chat',
    requestIdPrefix: 'chatcmpl-',
    usage: 'on_request',
    summary: 'Complete a chat',
    body: ChatRequest,
    checkRules: checkChatRules,
    reply: ChatResponse,
    streams: true,
  },
  {
    path: '/v1/completions',
    endpoint: 'completions',
    requestIdPrefix: 'cmpl-',
    usage: 'on_request',
    summary: 'Complete a text',
    body: CompletionRequest,
    checkRules: checkCompletionRules,
    reply: CompletionResponse,
    streams: true,
  },
  {
    path: '/generate',
    endpoint: 'generate',
    requestIdPrefix: 'gnt-',
    usage: 'meta_info',
    summary: 'Generate in the native format of the engine',
    body: GenerateRequest,
    checkRules: checkGenerateRules,
    reply: Type.Union([GenerationResponse, Type.Array(GenerationResponse)]),
    streams: true,
  },
  {
    path: '/v1/embeddings',
    endpoint: 'embeddings',
    requestIdPrefix: 'req-',
    usage: 'always',
    summary: 'Embed texts',
    body: EmbeddingRequest,
    reply: EmbeddingResponse,
    streams: false,
  },
  {
    path: '/v1/classify',
    endpoint: 'classify',
    requestIdPrefix: 'req-',
    usage: 'always',
    summary: 'Classify texts',
    body: ClassifyRequest,
    reply: ClassifyResponse,
    streams: false,
  },
]

export function inferenceRoutes(host: Host, config: ChatConfig): RouteDefinition[] {
  return rows.map((row) => {
    const check = config.validate === 'full' ? makeCheck(row) : null
    return toRoute(row, handlerOf(host, row, check, config))
  })
}

/** @param model to generate for */
type Serve = (ctx: RequestContext, model: string) => void | Promise<void>

function serveOf(host: Host, endpoint: InferenceRow['endpoint'], config: ChatConfig): Serve {
  const generations = host.use(Generations)
  const { balance } = host
  const opensAfterMs = config.streamOpensAfterMs
  switch (endpoint) {
    case 'chat':
      return (ctx, model) => {
        const workers = balance.workersOf(balance.canonicalModel(model))
        const mayRelay =
          config.chat === 'relay' &&
          !generations.mustGenerate(ctx) &&
          workers.some(({ apis }) => apis.includes(endpoint))
        serveChat(generations, ctx, ctx.bodyJson() as ChatRequest, { mayRelay, opensAfterMs })
      }
    case 'completions':
      return (ctx) => serveCompletion(generations, ctx, ctx.bodyJson() as CompletionRequest)
    case 'generate':
      return (ctx, model) => serveGenerate(generations, ctx, ctx.bodyJson() as GenerateRequest, model)
    case 'embeddings':
      return (ctx) => serveEmbedding(embeddingsOf(host), ctx, ctx.bodyJson() as EmbeddingRequest)
    case 'classify':
      return (ctx) => serveClassify(embeddingsOf(host), ctx, ctx.bodyJson() as ClassifyRequest)
  }
}

/** @throws embeddings_unsupported (501) */
function embeddingsOf(host: Host): EmbeddingService {
  const found = host.find(Embeddings)
  if (found === undefined) throw chatErrors.embeddings_unsupported()
  return found
}

/** Bytes are relayed if every worker of the model takes them; otherwise the body is checked and generated for. */
function handlerOf(
  host: Host,
  row: InferenceRow,
  check: FullCheck | null,
  config: ChatConfig,
): RouteDefinition['handler'] {
  const { endpoint } = row
  const needsModel = endpoint !== 'generate'
  const generations = host.use(Generations)
  const relay = relayHandler(host, row, check)
  const serve = serveOf(host, endpoint, config)
  const neverRelays = endpoint === 'chat' && config.chat === 'normalize'
  let fullCheck = check
  return (ctx) => {
    const { model } = ctx.peek()
    const isUnnamed = model === null || model === '' || (!needsModel && model === 'unknown')
    if (isUnnamed && needsModel) return relay(ctx)
    const named = neverRelays
      ? model
      : generations.modelToGenerate(isUnnamed ? null : model, endpoint, row.streams ? ctx : undefined)
    if (named === null) return relay(ctx)
    fullCheck ??= makeCheck(row)
    fullCheck(ctx)
    return serve(ctx, named)
  }
}

function relayHandler(host: Host, row: InferenceRow, check: FullCheck | null): RouteDefinition['handler'] {
  const { path, endpoint, streams, usage } = row
  const needsModel = endpoint !== 'generate'
  const checkCompletion =
    endpoint === 'chat' || endpoint === 'completions' ? checkStreamCompletion : undefined
  return (ctx) => {
    const { model, stream } = ctx.peek()
    if (needsModel && (model === null || model === ''))
      throw chatErrors.missing_model.with({ param: 'model' })
    if (check !== null) check(ctx)
    host.upstream.relay(ctx, {
      model: model === '' ? null : model,
      stream: streams && stream,
      path,
      checkCompletion,
      usage,
    })
  }
}

function toRoute(row: InferenceRow, handler: RouteDefinition['handler']): RouteDefinition {
  const { path, endpoint, requestIdPrefix, summary, body, reply, streams } = row
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
      body,
      responses: { 200: { description, schema: reply, streams }, ...failures },
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
