/** Records the last requests, for tests. */
import { hash } from 'node:crypto'
import type { RequestContext } from '#kernel'

/** Recorded headers; the kernel copies no others. */
export const RECORDED_HEADERS = [
  'authorization',
  'cookie',
  'x-custom',
  'x-request-id',
  'x-request-id-hop',
  'x-correlation-id',
  'traceparent',
  'tracestate',
  'x-weir-routing-key',
  'x-smg-routing-key',
  'user-agent',
  'accept',
  'content-type',
  'x-api-key',
] as const

const CAPACITY = 1000
/** Of longer bodies only size and hash are recorded. */
const KEPT_BODY_BYTES = 16_384

export type Outcome = 'open' | 'completed' | 'failed' | 'aborted' | 'dropped'

/** One recorded request. Times are Unix milliseconds. */
export interface RequestRecord {
  readonly number: number
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  readonly bodyBytes: number
  readonly bodySha256: string
  /** Text of `bootstrap_room`, a number or an array. */
  readonly bootstrapRoom: string | null
  readonly startedAtMs: number
  finishedAtMs: number | null
  abortedAtMs: number | null
  outcome: Outcome
}

interface Entry {
  readonly record: RequestRecord
  readonly body: Buffer | null
}

export class RequestLog {
  /** The oldest first. */
  #entries: Entry[] = []
  #count = 0

  open(ctx: RequestContext): RequestRecord {
    const headers: Record<string, string> = {}
    for (const name of RECORDED_HEADERS) {
      const value = ctx.header(name)
      if (value !== undefined) headers[name] = value
    }
    const body = ctx.bodyBytes
    const record: RequestRecord = {
      number: this.#count,
      method: ctx.method,
      path: ctx.path,
      query: ctx.query,
      headers,
      bodyBytes: body.length,
      bodySha256: hash('sha256', body, 'hex'),
      bootstrapRoom: findRoom(body),
      startedAtMs: Date.now(),
      finishedAtMs: null,
      abortedAtMs: null,
      outcome: 'open',
    }
    this.#count += 1
    this.#entries.push({ record, body: body.length <= KEPT_BODY_BYTES ? body : null })
    if (this.#entries.length > CAPACITY) this.#entries.shift()
    return record
  }

  close(record: RequestRecord, outcome: Outcome): void {
    record.outcome = outcome
    if (outcome === 'aborted') record.abortedAtMs = Date.now()
    else record.finishedAtMs = Date.now()
  }

  /** Oldest first. `body` is null if it was too long. */
  list(): (RequestRecord & { body: string | null })[] {
    return this.#entries.map(({ record, body }) => ({ ...record, body: body?.toString('utf8') ?? null }))
  }

  clear(): void {
    this.#entries = []
  }
}

/** Matched as text, since a parsed number would lose bits of a 63-bit room. */
const ROOM = /"bootstrap_room"\s*:\s*(\d+|\[[\d,\s]*\])/

function findRoom(body: Buffer): string | null {
  if (!body.includes('"bootstrap_room"')) return null
  return ROOM.exec(body.toString('utf8'))?.[1] ?? null
}
