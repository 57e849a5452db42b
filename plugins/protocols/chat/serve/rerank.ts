/** The rerank routes: a worker scores the documents, and the gateway writes the response. */
import {
  apiErrorFormat,
  defineValidator,
  type Host,
  isObject,
  type JsonObject,
  type RequestContext,
  type RouteDefinition,
  type Static,
  type WorkerEntry,
  type WorkerResponse,
} from '#kernel'
import { collectResponse } from '#shared'
import { chatErrors } from '../errors.ts'
import { RerankRequest, RerankResponse, V1RerankRequest } from '../wire/embedding.ts'
import { failures } from './inference-routes.ts'

const WORKER_PATH = '/v1/rerank'
/** Model in responses to requests without one. */
const UNNAMED_MODEL = 'unknown'

const rerankRequest = defineValidator(RerankRequest)
const v1RerankRequest = defineValidator(V1RerankRequest)

/** Options of the request that shape the response. */
interface RerankShape {
  /** Canonical; null lets any worker answer. */
  readonly model: string | null
  readonly id: string | string[] | null
  /** Null keeps all results. */
  readonly topK: number | null
  readonly returnDocuments: boolean
  /** Of the request, for workers that do not return them. */
  readonly documents?: Static<typeof V1RerankRequest>['documents']
}

/** POST /rerank. @throws 400 for a wrong field, and what `collectResponse` throws. */
function rerank(host: Host, ctx: RequestContext): Promise<void> {
  if (ctx.peek().model === null) throw chatErrors.missing_model.with({ param: 'model' })
  const { rid, top_k: topK, return_documents: returnDocuments, ...asked } = ctx.body(rerankRequest)
  return answer(host, ctx, asked, {
    id: rid ?? null,
    topK: topK ?? null,
    returnDocuments: returnDocuments ?? true,
  })
}

/** POST /v1/rerank: the worker reads members beyond. */
function v1Rerank(host: Host, ctx: RequestContext): Promise<void> {
  // As on the other routes, a body that is not an object is rejected as invalid JSON.
  ctx.peek()
  const { return_documents: returnDocuments, ...asked } = ctx.body(v1RerankRequest)
  return answer(host, ctx, asked, { id: null, topK: null, returnDocuments: returnDocuments ?? true })
}

async function answer(
  { upstream, balance }: Host,
  ctx: RequestContext,
  { query, documents, model: named }: Static<typeof V1RerankRequest>,
  shape: Omit<RerankShape, 'model' | 'documents'>,
): Promise<void> {
  if (typeof query === 'string' && query.trim() === '') throw chatErrors.blank_query.with({ param: 'query' })
  const model = named || null
  const workers = model === null ? balance.workers : balance.workersOf(model)
  const response = await collectResponse(upstream, ctx, {
    model,
    stream: false,
    path: WORKER_PATH,
    // If none takes it, the client gets the words of the engine.
    ...(workers.some(takesRerank) && { accepts: takesRerank }),
  })
  if (response.status < 200 || response.status > 299) {
    ctx.send(response.status, null, response.body, upstream.clientHeaders(response.headers))
    return
  }
  const canonical = model === null ? null : balance.canonicalModel(model)
  ctx.json(200, buildRerankResponse(response, { ...shape, model: canonical, documents }, Date.now()))
}

function takesRerank({ apis }: WorkerEntry): boolean {
  return apis.includes('rerank')
}

/**
 * Converts a worker's list, which is sorted already.
 *
 * @param nowMs Unix time in milliseconds
 * @throws rerank_response_build_failed (500) for any other body
 */
export function buildRerankResponse(
  response: WorkerResponse,
  shape: RerankShape,
  nowMs: number,
): RerankResponse {
  const { results: found, usage } = readRanking(response)
  const kept = shape.topK === null ? found : found.slice(0, shape.topK)
  return {
    results: kept.map(({ score, document, index }) => {
      const sent = Array.isArray(shape.documents) ? (shape.documents[index] as unknown) : undefined
      const shown = shape.returnDocuments ? (document ?? sent) : undefined
      return { score, relevance_score: score, ...(shown !== undefined && { document: shown }), index }
    }),
    model: shape.model ?? UNNAMED_MODEL,
    usage,
    object: 'rerank',
    id: shape.id,
    created: Math.floor(nowMs / 1000),
  }
}

const responses: RouteDefinition['docs']['responses'] = {
  200: { description: 'Scored documents, best first.', schema: RerankResponse },
  500: { description: "The worker's response is not a list of scored documents." },
  ...failures,
}

export function rerankRoutes(host: Host): RouteDefinition[] {
  const shared = { method: 'POST', access: 'api', errors: apiErrorFormat, endpoint: 'rerank' } as const
  return [
    {
      ...shared,
      path: '/rerank',
      handler: (ctx) => rerank(host, ctx),
      docs: { summary: 'Rank documents by a query', tag: 'Inference', body: RerankRequest, responses },
    },
    {
      ...shared,
      path: '/v1/rerank',
      handler: (ctx) => v1Rerank(host, ctx),
      docs: {
        summary: 'Rank all documents by a query',
        tag: 'Inference',
        body: V1RerankRequest,
        responses,
      },
    },
  ]
}

// Responses of workers: a bare list of scores, or the object of vLLM, Jina and Cohere around one.

interface RankedDocument {
  readonly score: number
  readonly index: number
  readonly document: unknown
}

interface Ranking {
  /** In the worker's order: best first. */
  readonly results: readonly RankedDocument[]
  readonly usage: Static<typeof RerankResponse>['usage']
}

/** @throws rerank_response_build_failed (500) */
function readRanking(response: WorkerResponse): Ranking {
  const answer = readJson(response)
  const list = Array.isArray(answer) ? answer : objectOf(answer)?.results
  if (!Array.isArray(list))
    throw chatErrors.rerank_response_build_failed('it must be a list, or hold one as results')
  const results = list.map(toRanked)
  const usage = Array.isArray(answer) ? usageOfParts(list) : usageOf(objectOf(answer) ?? {})
  return { results, usage }
}

function readJson(response: WorkerResponse): unknown {
  try {
    return response.json()
  } catch (cause) {
    throw chatErrors.rerank_response_build_failed.with({ cause }, 'not JSON')
  }
}

function toRanked(entry: unknown, place: number): RankedDocument {
  const { score, relevance_score, index, document } = objectOf(entry) ?? {}
  const value = score ?? relevance_score
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw chatErrors.rerank_response_build_failed(`entry ${place} has no score`)
  if (!Number.isInteger(index) || (index as number) < 0)
    throw chatErrors.rerank_response_build_failed(`entry ${place} has no index`)
  return { score: value, index: index as number, document: textOf(document) }
}

/** The text itself, or of an object that holds it; any other document as the worker returned it. */
function textOf(document: unknown): unknown {
  const text = objectOf(document)?.text
  return typeof text === 'string' ? text : (document ?? undefined)
}

/** vLLM and Jina count in `usage`, Cohere in `meta`. */
function usageOf({ usage, meta }: JsonObject): Ranking['usage'] {
  const counts = objectOf(usage) ?? {}
  const tokens = objectOf(objectOf(meta)?.tokens) ?? {}
  const prompt = countOf(counts.prompt_tokens) ?? countOf(tokens.input_tokens)
  const total = countOf(counts.total_tokens)
  return { prompt_tokens: prompt ?? total ?? 0, total_tokens: total ?? prompt ?? 0 }
}

/** Bare lists count entry by entry. */
function usageOfParts(list: readonly unknown[]): Ranking['usage'] {
  const counts = list.map((entry) => countOf(objectOf(objectOf(entry)?.meta_info)?.prompt_tokens) ?? 0)
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { prompt_tokens: total, total_tokens: total }
}

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}

function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined
}
