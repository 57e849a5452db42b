/**
 * Keeps the stocks of shared limits filled, on control: one question to the engine every 50 ms for all buckets in use, and
 * at once for requests that wait. Stocks hold about what the next 50 ms will use; what is not used goes back.
 */
import type { Grant, GrantRequest } from '#kernel'
import { CoalescedWork } from '#shared'
import type { BucketFacts, TokenNeed } from './allowance.ts'
import type { AllowanceMemory } from './allowance-memory.ts'

const TICK_MS = 50
/** Stocks that are larger than needed for this long go back; a refusal holds as long, since others give back too. */
const RETURN_MS = 500
/** Longest wait for the engine; then this gateway uses its share of the limits. */
const ENGINE_WAIT_MS = 250
/** Buckets of one question. */
const MAX_ASKED = 500

interface Bucket {
  facts: BucketFacts
  readonly row: number
  /** Tokens that requests wait for. */
  need: number
  /** Expected use in 50 ms. */
  use: number
  taken: number
  measuredAtMs: number
  /** Latest time at which the stock was not too large. */
  neededAtMs: number
  window: number
  /** Latest end of the window. */
  endsAtMs: number
}

interface Asked {
  readonly bucket: Bucket
  readonly request: GrantRequest
}

export interface TokenGrantsParts {
  readonly memory: AllowanceMemory
  readonly grant: (requests: readonly GrantRequest[]) => Promise<readonly Grant[]>
  /** Parts into which limits are divided while the engine is away. */
  readonly shares: () => number
  /** The clock of the memory, milliseconds. */
  readonly nowMs: () => number
}

export class TokenGrants {
  readonly #parts: TokenGrantsParts
  readonly #buckets = new Map<string, Bucket>()
  readonly #rows = new Map<number, string>()
  readonly #asking = new CoalescedWork(async () => {
    await this.#askAll()
    this.#schedule()
  })
  /** A question without an answer yet, whose waiting time is over. */
  #late: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #isStopped = false

  constructor(parts: TokenGrantsParts) {
    this.#parts = parts
  }

  /** Resolves when the engine has been asked, or is known to be away. */
  ask(needs: readonly TokenNeed[]): Promise<void> {
    for (const { bucket, tokens } of needs) this.#bucketOf(bucket).need += tokens
    return this.#asking.run()
  }

  /** Tokens left of limits, and held in stock here; negative after an overrun. @throws mesh_unavailable (503) */
  async left(buckets: readonly BucketFacts[]): Promise<{ left: number; held: number }[]> {
    const requests = buckets.map((facts) => toRequest(facts, 0, 0, 0))
    const grants = await this.#parts.grant(requests)
    return grants.map(({ left, window }, at) => ({ left, held: this.#heldOf(buckets[at].name, window) }))
  }

  /** Gives all stocks back. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    await this.#asking.idle()
    const requests = [...this.#buckets.values()].map(({ facts, row, window }) =>
      toRequest(facts, 0, -this.#parts.memory.withdraw(row, facts.limit), window),
    )
    if (requests.length > 0) await this.#parts.grant(requests).catch(() => undefined)
  }

  #heldOf(name: string, window: number): number {
    const bucket = this.#buckets.get(name)
    if (bucket === undefined || bucket.window !== window) return 0
    return this.#parts.memory.stock(bucket.row, this.#parts.nowMs()).tokens
  }

  #bucketOf(facts: BucketFacts): Bucket {
    const known = this.#buckets.get(facts.name)
    if (known !== undefined) {
      known.facts = facts
      return known
    }
    const { memory, nowMs } = this.#parts
    const row = memory.claim(facts.low, facts.high, (free) => !this.#rows.has(free))
    const evicted = this.#rows.get(row)
    if (evicted !== undefined) this.#buckets.delete(evicted)
    const now = nowMs()
    const bucket: Bucket = {
      facts,
      row,
      need: 0,
      use: 0,
      taken: memory.taken(row),
      measuredAtMs: now,
      neededAtMs: now,
      window: 0,
      endsAtMs: now,
    }
    this.#buckets.set(facts.name, bucket)
    this.#rows.set(row, facts.name)
    return bucket
  }

  #schedule(): void {
    if (this.#timer !== null || this.#isStopped) return
    const isAway = this.#parts.memory.shares > 0
    if (this.#buckets.size === 0 && !isAway) return
    let delayMs = isAway ? ENGINE_WAIT_MS : TICK_MS
    const now = this.#parts.nowMs()
    // New windows begin with stocks.
    for (const { endsAtMs } of this.#buckets.values())
      if (endsAtMs > now) delayMs = Math.min(delayMs, endsAtMs - now)
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        this.#measure()
        void this.#asking.run()
      },
      Math.max(1, Math.ceil(delayMs)),
    )
  }

  /** Updates the expected use, and forgets buckets without a use. */
  #measure(): void {
    const { memory, nowMs } = this.#parts
    const now = nowMs()
    for (const [name, bucket] of this.#buckets) {
      const { row } = bucket
      const taken = memory.taken(row)
      const { tokens, isOver, isRefused } = memory.stock(row, now)
      const used = (taken - bucket.taken) | 0
      const elapsedMs = Math.max(1, now - bucket.measuredAtMs)
      bucket.taken = taken
      bucket.measuredAtMs = now
      // The use of a refused bucket is not known.
      if (!isRefused) {
        const weight = Math.min(0.9, elapsedMs / (2 * TICK_MS))
        bucket.use += weight * ((used * TICK_MS) / elapsedMs - bucket.use)
      }
      if (bucket.need > 0 || used > 0 || tokens < 0) bucket.neededAtMs = now
      else if (tokens <= 2 * targetOf(bucket) && bucket.use > 0.01) bucket.neededAtMs = now
      if (now - bucket.neededAtMs < RETURN_MS || (tokens > 0 && !isOver)) continue
      memory.clear(row)
      this.#buckets.delete(name)
      this.#rows.delete(row)
    }
  }

  async #askAll(): Promise<void> {
    if (this.#late !== null) return
    const { memory } = this.#parts
    const isAway = memory.shares > 0
    // An empty question finds out whether the engine is back.
    const asked = isAway ? [] : [...this.#buckets.values()].flatMap((bucket) => this.#toAsk(bucket))
    if (asked.length === 0 && !isAway) return
    for (let from = 0; from === 0 || from < asked.length; from += MAX_ASKED) {
      const sentAtMs = this.#parts.nowMs()
      const some = asked.slice(from, from + MAX_ASKED)
      const done = this.#parts.grant(some.map(({ request }) => request)).then(
        (grants) => {
          for (const [at, { bucket }] of some.entries()) this.#apply(bucket, grants[at], sentAtMs)
          // Requests do not wait for an engine that is too slow.
          if (this.#parts.nowMs() - sentAtMs <= ENGINE_WAIT_MS) memory.shares = 0
        },
        () => {
          memory.shares = this.#parts.shares()
        },
      )
      if (await settles(done, ENGINE_WAIT_MS)) continue
      memory.shares = this.#parts.shares()
      this.#late = done.finally(() => {
        this.#late = null
      })
      return
    }
  }

  #toAsk(bucket: Bucket): Asked[] {
    const { facts, row, need, window } = bucket
    const { memory, nowMs } = this.#parts
    const now = nowMs()
    bucket.need = 0
    const { tokens, isOver, isRefused } = memory.stock(row, now)
    const target = Math.min(facts.limit, targetOf(bucket))
    if (!isOver && now - bucket.neededAtMs >= RETURN_MS && tokens > target) {
      const surplus = memory.withdraw(row, tokens - target)
      return [{ bucket, request: toRequest(facts, 0, -surplus, window) }]
    }
    if (isRefused) return []
    const stock = isOver ? Math.min(0, tokens) : tokens
    const missing = Math.max(0, need - stock)
    const want = Math.max(missing, need + target - stock)
    // A small rest is asked for with the next tokens.
    if (missing === 0 && want <= target / 4) return []
    return [{ bucket, request: toRequest(facts, Math.min(want, missing), want, window) }]
  }

  #apply(bucket: Bucket, { granted, left, window, endsInMs }: Grant, sentAtMs: number): void {
    const { memory, nowMs } = this.#parts
    const now = nowMs()
    if (this.#rows.get(bucket.row) !== bucket.facts.name) return
    const earliestEndMs = sentAtMs + endsInMs
    // An answer that took longer than the rest of its window.
    if (earliestEndMs <= now) return
    bucket.window = window
    bucket.endsAtMs = now + endsInMs + 1
    memory.grant(bucket.row, Math.max(0, granted), window, earliestEndMs)
    if (left === 0) memory.refuse(bucket.row, Math.min(bucket.endsAtMs, now + RETURN_MS))
  }
}

/** Stock for the next 50 ms. A bucket with few requests has none: each asks for itself. */
function targetOf({ use }: Bucket): number {
  return use < 0.25 ? 0 : Math.round(use * 1.5 + Math.min(2 * Math.sqrt(use), 2 * use))
}

function toRequest(facts: BucketFacts, need: number, want: number, window: number): GrantRequest {
  const { name, limit, windowMs } = facts
  return { bucket: name, limit, windowMs, need, want, window }
}

/** Whether it settles in time. What has arrived meanwhile counts, even if this thread did not run until the end of the time. */
async function settles(work: Promise<void>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => setImmediate(() => setImmediate(() => resolve(false))), limitMs)
  })
  const isDone = await Promise.race([work.then(() => true), late])
  clearTimeout(timer)
  return isDone
}
