/**
 * Answers a chat request from memory if the same tenant has sent the same bytes before. Streamed answers are not cached.
 * Limits and budgets apply as to any request; a cached answer uses no tokens.
 */
import { createHash } from 'node:crypto'
import { definePlugin, type RequestContext, Type, tenantOf, type WholeResponse } from 'weir-gateway'

interface Entry {
  readonly body: Buffer
  readonly contentType: string
  readonly expiresAtMs: number
}

/** The least recently used entries are dropped first. */
class ResponseCache {
  readonly #entries = new Map<string, Entry>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
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
    for (const [oldest, { body }] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) break
      this.#entries.delete(oldest)
      this.#bytes -= body.length
    }
  }

  #add(key: string, entry: Entry): void {
    this.#entries.set(key, entry)
    this.#bytes += entry.body.length
  }

  #remove(key: string, { body }: Entry): void {
    this.#entries.delete(key)
    this.#bytes -= body.length
  }
}

export default definePlugin({
  manifest: {
    name: 'response-cache',
    version: '0.1.0',
    description: 'Answers repeated chat requests from memory.',
    config: Type.Object(
      {
        ttlSecs: Type.Integer({ minimum: 1, default: 300, description: 'Lifetime of an answer, seconds.' }),
        maxBytes: Type.Integer({
          minimum: 1,
          default: 67_108_864,
          description: 'Bytes of answers in memory, per thread.',
        }),
      },
      { additionalProperties: false },
    ),
  },
  register(host, { ttlSecs, maxBytes }) {
    const cache = new ResponseCache(maxBytes)
    /** Key of a request whose answer is to be stored. */
    const key = host.slot<string>()
    const requests = host.metrics.counter({
      name: 'response_cache_requests_total',
      help: 'Chat requests by result of the cache.',
      labels: ['result'],
    })
    const hits = requests.labels('hit')
    const misses = requests.labels('miss')

    const onRequest = (ctx: RequestContext): WholeResponse | undefined => {
      if (ctx.peek().stream || ctx.header('cache-control')?.includes('no-store')) return undefined
      const digest = createHash('sha256').update(ctx.bodyBytes).digest('base64')
      const name = `${tenantOf(ctx)}\n${digest}`
      const entry = cache.get(name)
      if (entry === null) {
        misses.inc()
        key.set(ctx, name)
        return undefined
      }
      hits.inc()
      const { contentType, body } = entry
      return { status: 200, contentType, body, headers: ['x-cache', 'hit'] }
    }
    const routes = ({ path }: { readonly path: string }) => path === '/v1/chat/completions'
    // After the limits, which count cached answers too.
    host.hook('onRequest', onRequest, { scope: 'all', order: 'late', routes, headers: ['cache-control'] })
    host.hook(
      'onResponse',
      (ctx, { status, headers, body }) => {
        const name = key.get(ctx)
        if (name === undefined) return
        headers.push('x-cache', 'miss')
        if (status !== 200 || body === null) return
        const at = headers.indexOf('content-type')
        const contentType = at < 0 ? 'application/json' : headers[at + 1]
        // The memory of the body may be used again.
        const expiresAtMs = Date.now() + ttlSecs * 1000
        cache.set(name, { body: Buffer.from(body), contentType, expiresAtMs })
      },
      { scope: 'all', routes },
    )
  },
})
