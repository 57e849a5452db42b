/**
 * Answers a chat request with the answer to a question that means the same: an embedding model behind the gateway compares the
 * last user message. Everything else of the request must be equal, and so must the tenant. Streams are not cached.
 */
import { createHash } from 'node:crypto'
import { definePlugin, isObject, type RequestContext, Type, tenantOf, type WholeResponse } from 'weir-gateway'

interface Entry {
  /** Of length 1. */
  readonly vector: Float32Array
  readonly body: Buffer
  readonly expiresAtMs: number
}

/** A request whose answer is to be stored. */
interface Question {
  readonly group: string
  readonly vector: Float32Array
}

/** Answers by group: tenant, model, settings and earlier messages. */
class SemanticCache {
  readonly #groups = new Map<string, Entry[]>()
  readonly #maxEntries: number
  #count = 0

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
  }

  find({ group, vector }: Question, threshold: number): Entry | null {
    let best: Entry | null = null
    let bestScore = threshold
    for (const entry of this.#groups.get(group) ?? []) {
      const score = entry.expiresAtMs > Date.now() ? dot(entry.vector, vector) : -1
      if (score < bestScore) continue
      best = entry
      bestScore = score
    }
    return best
  }

  /** Drops the oldest answer of the group that was stored to least recently. */
  add({ group }: Question, entry: Entry): void {
    const entries = this.#groups.get(group) ?? []
    this.#groups.delete(group)
    this.#groups.set(group, entries)
    entries.push(entry)
    if (++this.#count <= this.#maxEntries) return
    const [[oldest, old]] = this.#groups
    old.shift()
    this.#count--
    if (old.length === 0) this.#groups.delete(oldest)
  }
}

function dot(left: Float32Array, right: Float32Array): number {
  if (left.length !== right.length) return -1
  let sum = 0
  for (let index = 0; index < left.length; index++) sum += left[index] * right[index]
  return sum
}

/** @returns null if the answer is not one embedding */
function toVector(body: unknown): Float32Array | null {
  const list: unknown = isObject(body) ? body.data : null
  const first: unknown = Array.isArray(list) ? list[0] : null
  const numbers = isObject(first) ? first.embedding : null
  if (!Array.isArray(numbers) || !numbers.every((one) => typeof one === 'number')) return null
  const vector = Float32Array.from(numbers)
  const length = Math.sqrt(dot(vector, vector))
  return length === 0 ? null : vector.map((value) => value / length)
}

/** Splits a request into the text to compare and everything else. @returns null for a request that is not cached */
function splitRequest(ctx: RequestContext): { text: string; rest: string } | null {
  if (ctx.peek().stream) return null
  const body = ctx.bodyJson()
  if (!isObject(body) || !Array.isArray(body.messages)) return null
  const last: unknown = body.messages.at(-1)
  if (!isObject(last) || last.role !== 'user' || typeof last.content !== 'string') return null
  return { text: last.content, rest: JSON.stringify({ ...body, messages: body.messages.slice(0, -1) }) }
}

export default definePlugin({
  manifest: {
    name: 'semantic-cache',
    version: '0.1.0',
    description: 'Answers chat requests with answers to questions of the same meaning.',
    config: Type.Object(
      {
        embeddingModel: Type.String({
          minLength: 1,
          description: 'Model behind the gateway that embeds the questions.',
        }),
        threshold: Type.Number({
          minimum: 0,
          maximum: 1,
          default: 0.95,
          description: 'Least cosine similarity of two questions with the same answer.',
        }),
        ttlSecs: Type.Integer({ minimum: 1, default: 3600, description: 'Lifetime of an answer, seconds.' }),
        maxEntries: Type.Integer({
          minimum: 1,
          default: 1000,
          description: 'Answers in memory, per thread.',
        }),
      },
      { additionalProperties: false },
    ),
  },
  register(host, { embeddingModel, threshold, ttlSecs, maxEntries }) {
    const cache = new SemanticCache(maxEntries)
    const asked = host.slot<Question>()

    /** The tokens of the embedding count for the tenant. */
    const embed = async (ctx: RequestContext, text: string): Promise<Float32Array | null> => {
      const question = {
        model: embeddingModel,
        path: '/v1/embeddings',
        api: 'embeddings',
        body: { input: text },
      }
      const { status, body } = await host.upstream.ask(ctx, question)
      return status === 200 ? toVector(body) : null
    }
    const onRequest = async (ctx: RequestContext): Promise<WholeResponse | undefined> => {
      const parts = splitRequest(ctx)
      if (parts === null) return undefined
      // Without an embedding the request is served as if there were no cache.
      const vector = await embed(ctx, parts.text).catch((err: unknown) => {
        host.log.warn({ err, request_id: ctx.requestId }, 'question not embedded')
        return null
      })
      if (vector === null) return undefined
      const digest = createHash('sha256').update(parts.rest).digest('base64')
      const question = { group: `${tenantOf(ctx)}\n${digest}`, vector }
      const entry = cache.find(question, threshold)
      if (entry === null) {
        asked.set(ctx, question)
        return undefined
      }
      return { status: 200, contentType: 'application/json', body: entry.body, headers: ['x-cache', 'hit'] }
    }
    const routes = ({ path }: { readonly path: string }) => path === '/v1/chat/completions'
    // After the limits, which count cached answers too.
    host.hook('onRequest', onRequest, { scope: 'all', order: 'late', routes })
    host.hook(
      'onResponse',
      (ctx, { status, headers, body }) => {
        const question = asked.get(ctx)
        if (question === undefined) return
        headers.push('x-cache', 'miss')
        if (status !== 200 || body === null) return
        const expiresAtMs = Date.now() + ttlSecs * 1000
        cache.add(question, { vector: question.vector, body: Buffer.from(body), expiresAtMs })
      },
      { scope: 'all', routes },
    )
  },
})
