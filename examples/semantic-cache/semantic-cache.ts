/**
 * Answers a request with the answer to a question that means the same: an embedding model behind the gateway compares the last
 * user message. Everything else of the request must be equal, and so must the tenant. Serves every format, streamed or not.
 */
import { createHash } from 'node:crypto'
import {
  definePlugin,
  type GenerationAnswer,
  type GenerationEvent,
  type GenerationRequest,
  isObject,
  type OpeningGeneration,
  type RequestContext,
  Type,
  tenantOf,
} from 'weir-gateway'

interface Entry {
  /** Of length 1. */
  readonly vector: Float32Array
  readonly events: GenerationAnswer
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

/**
 * Splits a request into the text to compare and everything else; only `native` has what a vendor's own format adds.
 *
 * @returns null for a request that is not cached
 */
function splitRequest({
  native,
  prompt,
  ...others
}: GenerationRequest): { text: string; rest: string } | null {
  if (prompt.kind !== 'chat') return null
  const last = prompt.messages.at(-1)
  if (last?.role !== 'user' || typeof last.content !== 'string') return null
  const own = native && [native.engine, native.prompt().slice(0, -1), { ...native.members(), stream: null }]
  const rest = [others, prompt.messages.slice(0, -1), own]
  const toPlain = (_: string, value: unknown) => (value instanceof Map ? [...value] : value)
  return { text: last.content, rest: JSON.stringify(rest, toPlain) }
}

export default definePlugin({
  manifest: {
    name: 'semantic-cache',
    version: '0.1.0',
    description: 'Answers requests with answers to questions of the same meaning.',
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
    const results = host.slot<'hit' | 'miss'>()

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
    const onGeneration = async (
      ctx: RequestContext,
      generation: OpeningGeneration,
    ): Promise<GenerationAnswer | undefined> => {
      const parts = splitRequest(generation.request)
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
      results.set(ctx, entry === null ? 'miss' : 'hit')
      if (entry !== null) return entry.events
      const events: GenerationEvent[] = []
      generation.mapEvents((event) => {
        // The worker may be removed before the entry.
        events.push(event.type === 'started' ? { ...event, worker: null } : event)
        if (event.type === 'finished')
          cache.add(question, { vector, events, expiresAtMs: Date.now() + ttlSecs * 1000 })
        return event
      })
      return undefined
    }
    const served = {
      scope: 'all',
      routes: ({ access }: { readonly access: string }) => access === 'api',
    } as const
    // After the limits, which count cached answers too.
    host.hook('onGeneration', onGeneration, { ...served, order: 'late', needsGenerations: true })
    host.hook(
      'onResponse',
      (ctx, { headers }) => {
        const result = results.get(ctx)
        if (result !== undefined) headers.push('x-cache', result)
      },
      { ...served, maxResponseBytes: 0 },
    )
  },
})
