/**
 * Answers a request from memory if the same tenant has sent an equal one before: of every format, streamed or not. Limits and
 * budgets apply as to any request; a cached answer uses no tokens.
 */
import { createHash } from 'node:crypto'
import {
  definePlugin,
  type GenerationAnswer,
  type GenerationEvent,
  type GenerationRequest,
  type OpeningGeneration,
  type RequestContext,
  Type,
  tenantOf,
} from 'weir-gateway'

interface Entry {
  /** The events of the answer, JSON. */
  readonly events: string
  readonly expiresAtMs: number
}

/** The least recently used entries are dropped first. */
class AnswerCache {
  readonly #entries = new Map<string, Entry>()
  readonly #maxCharacters: number
  #characters = 0

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters
  }

  get(key: string): Entry | null {
    const entry = this.#entries.get(key)
    if (entry === undefined) return null
    this.#remove(key, entry)
    if (entry.expiresAtMs <= Date.now()) return null
    this.#add(key, entry)
    return entry
  }

  set(key: string, entry: Entry): void {
    const old = this.#entries.get(key)
    if (old !== undefined) this.#remove(key, old)
    this.#add(key, entry)
    for (const [oldest, { events }] of this.#entries) {
      if (this.#characters <= this.#maxCharacters) break
      this.#entries.delete(oldest)
      this.#characters -= events.length
    }
  }

  #add(key: string, entry: Entry): void {
    this.#entries.set(key, entry)
    this.#characters += entry.events.length
  }

  #remove(key: string, { events }: Entry): void {
    this.#entries.delete(key)
    this.#characters -= events.length
  }
}

/** The same for equal requests, streamed or not. Only `native` has what a vendor's own format adds. */
function textOf({ native, ...request }: GenerationRequest): string {
  const own = native && [native.engine, native.prompt(), { ...native.members(), stream: null }]
  return JSON.stringify([request, own], (_, value) => (value instanceof Map ? [...value] : value))
}

export default definePlugin({
  manifest: {
    name: 'response-cache',
    version: '0.1.0',
    description: 'Answers repeated requests from memory.',
    config: Type.Object(
      {
        ttlSecs: Type.Integer({ minimum: 1, default: 300, description: 'Lifetime of an answer, seconds.' }),
        maxCharacters: Type.Integer({
          minimum: 1,
          default: 67_108_864,
          description: 'Characters of answers in memory, per thread.',
        }),
      },
      { additionalProperties: false },
    ),
  },
  register(host, { ttlSecs, maxCharacters }) {
    const cache = new AnswerCache(maxCharacters)
    const results = host.slot<'hit' | 'miss'>()
    const requests = host.metrics.counter({
      name: 'response_cache_requests_total',
      help: 'Generations by result of the cache.',
      labels: ['result'],
    })

    const onGeneration = (
      ctx: RequestContext,
      generation: OpeningGeneration,
    ): GenerationAnswer | undefined => {
      if (ctx.header('cache-control')?.includes('no-store')) return undefined
      const digest = createHash('sha256').update(textOf(generation.request)).digest('base64')
      const key = `${tenantOf(ctx)}\n${digest}`
      const entry = cache.get(key)
      const result = entry === null ? 'miss' : 'hit'
      results.set(ctx, result)
      requests.labels(result).inc()
      if (entry !== null) return JSON.parse(entry.events)
      const events: GenerationEvent[] = []
      generation.mapEvents((event) => {
        // The worker may be removed before the entry.
        events.push(event.type === 'started' ? { ...event, worker: null } : event)
        if (event.type === 'finished')
          cache.set(key, { events: JSON.stringify(events), expiresAtMs: Date.now() + ttlSecs * 1000 })
        return event
      })
      return undefined
    }
    const served = {
      scope: 'all',
      routes: ({ access }: { readonly access: string }) => access === 'api',
    } as const
    // After the limits, which count cached answers too.
    host.hook('onGeneration', onGeneration, {
      ...served,
      order: 'late',
      needsGenerations: true,
      headers: ['cache-control'],
    })
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
