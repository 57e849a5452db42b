/** Reranking: asks a worker for scores and wraps its list into the gateway's own reply. */
import { defineValidator, type RequestContext, type WorkerReply } from '#kernel'
import { type CollectingUpstream, collectReply } from '#shared'
import { chatErrors } from '../../errors.ts'
import { type RerankReply, RerankRequest, V1RerankRequest } from '../../wire/rerank.ts'
import { readRanking } from './ranking.ts'

const WORKER_PATH = '/v1/rerank'
/** What a reply says of a request that named no model. */
const UNNAMED_MODEL = 'unknown'

const rerankRequest = defineValidator(RerankRequest)
const v1RerankRequest = defineValidator(V1RerankRequest)

/** What of the request shapes the reply. */
interface RerankShape {
  /** Canonical; null lets any worker answer. */
  readonly model: string | null
  readonly id: string | string[] | null
  /** Null keeps all results. */
  readonly topK: number | null
  readonly returnDocuments: boolean
  /** Of the request: workers need not send them back. */
  readonly documents?: readonly string[]
}

/** How handlers reach workers; the host fits. */
interface RerankHost {
  readonly upstream: CollectingUpstream
  readonly balance: { canonicalModel(model: string): string }
}

/** POST /rerank. @throws 400 for a wrong field, and what `collectReply` throws. */
export async function rerank(host: RerankHost, ctx: RequestContext): Promise<void> {
  if (ctx.peek().model === null) throw chatErrors.missing_model.with({ param: 'model' })
  const request = ctx.body(rerankRequest)
  checkQuery(request.query)
  await answer(host, ctx, request.model, {
    model: host.balance.canonicalModel(request.model),
    id: request.rid ?? null,
    topK: request.top_k ?? null,
    returnDocuments: request.return_documents ?? true,
    documents: request.documents,
  })
}

/** POST /v1/rerank: only query, documents and model are read. */
export async function v1Rerank(host: RerankHost, ctx: RequestContext): Promise<void> {
  // Like the other routes: what is no object is no JSON for this purpose.
  ctx.peek()
  const request = ctx.body(v1RerankRequest)
  checkQuery(request.query)
  const model = request.model == null || request.model === '' ? null : request.model
  await answer(host, ctx, model, {
    model: model === null ? null : host.balance.canonicalModel(model),
    id: null,
    topK: null,
    returnDocuments: true,
    documents: request.documents,
  })
}

function checkQuery(query: string): void {
  if (query.trim() === '') throw chatErrors.blank_query.with({ param: 'query' })
}

async function answer(
  host: RerankHost,
  ctx: RequestContext,
  model: string | null,
  shape: RerankShape,
): Promise<void> {
  const reply = await collectReply(host.upstream, ctx, { model, stream: false, path: WORKER_PATH })
  if (reply.status >= 200 && reply.status <= 299) ctx.json(200, buildRerankReply(reply, shape, Date.now()))
  else ctx.send(reply.status, null, reply.body, reply.clientHeaders())
}

/**
 * Wraps a worker's list; its order is kept, for the worker has sorted it.
 *
 * @param nowMs Unix time in milliseconds
 * @throws rerank_response_build_failed (500) when the body is anything else
 */
export function buildRerankReply(reply: WorkerReply, shape: RerankShape, nowMs: number): RerankReply {
  const { results: found, usage } = readRanking(reply)
  const kept = shape.topK === null ? found : found.slice(0, shape.topK)
  return {
    results: kept.map(({ score, document, index }) => {
      const text = shape.returnDocuments ? (document ?? shape.documents?.[index]) : undefined
      return { score, relevance_score: score, ...(text !== undefined && { document: text }), index }
    }),
    model: shape.model ?? UNNAMED_MODEL,
    usage,
    object: 'rerank',
    id: shape.id,
    created: Math.floor(nowMs / 1000),
  }
}
