/** The last requests of all threads, on control, bounded by number and age. */
import type { RequestView } from './wire.ts'

/** Maximum requests returned for one id. */
const MAX_PER_ID = 10

interface Remembered {
  /** Counts the records from 1, because ids of requests may repeat. */
  readonly number: number
  readonly view: RequestView
  readonly atMs: number
}

/** Which records a page has; null members accept any. */
export interface RequestFilter {
  readonly tenant: string | null
  readonly model: string | null
  /** Id or URL of a worker of any attempt. */
  readonly worker: string | null
  /** Such as `404`, or `4xx` for a class. */
  readonly status: string | null
  readonly limit: number
  /** Number of the last record of the page before; null for the first page. */
  readonly after: number | null
}

export interface RequestPage {
  readonly requests: readonly RequestView[]
  readonly hasMore: boolean
  /** Number of the last record; null for an empty page. */
  readonly last: number | null
}

/** Kept on control. */
export class RequestLog {
  #count = 0
  readonly #byId = new Map<string, Remembered[]>()
  readonly #inOrder: Remembered[] = []
  /** Index of the oldest record; the front of the list is removed in batches. */
  #first = 0
  readonly #keep: number
  readonly #keepMs: number
  readonly #nowMs: () => number

  constructor(keep: number, keepMs: number, nowMs: () => number = () => performance.now()) {
    this.#keep = keep
    this.#keepMs = keepMs
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#inOrder.length - this.#first
  }

  add(views: readonly RequestView[]): void {
    const atMs = this.#nowMs()
    for (const view of views) {
      const remembered = { number: ++this.#count, view, atMs }
      this.#inOrder.push(remembered)
      const same = this.#byId.get(view.request_id)
      if (same === undefined) this.#byId.set(view.request_id, [remembered])
      else same.push(remembered)
    }
    this.#forget()
  }

  /** Latest first. */
  find(requestId: string): RequestView[] {
    this.#forget()
    const found = this.#byId.get(requestId) ?? []
    return found
      .slice(-MAX_PER_ID)
      .reverse()
      .map(({ view }) => view)
  }

  /** Latest first. */
  page(filter: RequestFilter): RequestPage {
    this.#forget()
    const found: Remembered[] = []
    const newest = this.#inOrder.at(-1)?.number ?? 0
    const skipped = filter.after === null ? 0 : Math.max(0, newest - filter.after + 1)
    for (let index = this.#inOrder.length - 1 - skipped; index >= this.#first; index--) {
      if (!matches(this.#inOrder[index].view, filter)) continue
      found.push(this.#inOrder[index])
      if (found.length > filter.limit) break
    }
    const shown = found.slice(0, filter.limit)
    return {
      requests: shown.map(({ view }) => view),
      hasMore: found.length > shown.length,
      last: shown.at(-1)?.number ?? null,
    }
  }

  #forget(): void {
    const due = this.#nowMs() - this.#keepMs
    while (this.size > this.#keep || (this.size > 0 && this.#inOrder[this.#first].atMs < due)) {
      const { view } = this.#inOrder[this.#first++]
      const same = this.#byId.get(view.request_id)
      // The first record in the list of an id is the oldest.
      if (same !== undefined && same.length > 1) same.shift()
      else this.#byId.delete(view.request_id)
    }
    // Removes the deleted front when it is as long as the rest.
    if (this.#first <= this.#keep) return
    this.#inOrder.splice(0, this.#first)
    this.#first = 0
  }
}

function matches(view: RequestView, { tenant, model, worker, status }: RequestFilter): boolean {
  if (tenant !== null && view.tenant !== tenant) return false
  if (model !== null && view.model !== model) return false
  if (status !== null && !isOfStatus(view.status, status)) return false
  return (
    worker === null ||
    view.attempts.some(({ worker_id, worker_url }) => worker_id === worker || worker_url === worker)
  )
}

function isOfStatus(status: number, wanted: string): boolean {
  return wanted.endsWith('xx') ? String(status)[0] === wanted[0] : String(status) === wanted
}
