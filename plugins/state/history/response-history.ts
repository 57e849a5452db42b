/** Stored responses: created, updated while running, finished once, deleted. */
import {
  type FinishedResponse,
  type FinishOptions,
  type FinishResult,
  type HistoryProblem,
  JsonText,
  type LoadedHistory,
  type ResponseHistory,
  type ResponseRecord,
} from '#kernel'
import { ChainReader } from './chain-reader.ts'
import { ChangeList, CONFLICT, retryOnConflict, SYNCED } from './change-list.ts'
import {
  ageId,
  type HistoryParts,
  isId,
  isRunning,
  itemsOf,
  type StoredResponse,
  turnId,
} from './collections.ts'
import { ResponseFinisher } from './finish-response.ts'
import type { HistoryCache } from './history-cache.ts'
import { removeTurnPointers } from './item-index.ts'
import type { TenantUsage } from './tenant-usage.ts'

const MAX_CREATED = 20_000

export class StoredResponses implements ResponseHistory {
  readonly #parts: HistoryParts
  readonly #usage: TenantUsage
  readonly #chains: ChainReader
  readonly #end: ResponseFinisher
  /** Running responses created by this thread, so that `finish` need not read whether they exist. */
  readonly #created = new Set<string>()

  constructor(parts: HistoryParts, usage: TenantUsage, cache: HistoryCache) {
    this.#parts = parts
    this.#usage = usage
    this.#chains = new ChainReader(parts, cache)
    this.#end = new ResponseFinisher(parts, usage, this.#chains)
  }

  async create(tenant: string, record: ResponseRecord, isQueued = false): Promise<void> {
    const { responses, ages, waitingJobs } = this.#parts
    const list = new ChangeList(tenant).put(responses, record.id, toStored(record), null)
    list.put(ages, ageId(record.createdAtSec, record.id), list.textBytes)
    if (isQueued) list.put(waitingJobs, record.id, { attempts: 0 })
    const isNew = (await this.#parts.store.write(list.changes, SYNCED)) !== null
    if (!isNew) throw new TypeError(`response ${record.id} already exists`)
    this.#usage.add(tenant, list.textBytes)
    this.#created.add(record.id)
    for (const oldest of this.#created) {
      if (this.#created.size <= MAX_CREATED) break
      this.#created.delete(oldest)
    }
  }

  update(tenant: string, id: string, change: Parameters<ResponseHistory['update']>[2]): Promise<boolean> {
    const { responses } = this.#parts
    return retryOnConflict(async () => {
      const before = isId(id) ? await responses.read(tenant, id) : undefined
      if (before === undefined || !isRunning(before.value)) return false
      const list = new ChangeList(tenant).put(responses, id, { ...before.value, ...change }, before.version)
      return (await this.#parts.store.write(list.changes)) === null ? CONFLICT : true
    })
  }

  finish(tenant: string, record: FinishedResponse, options: FinishOptions = {}): Promise<FinishResult> {
    const isNew = !this.#created.delete(record.id) && options.job === undefined
    return this.#end.finish(tenant, record, options, isNew)
  }

  async get(tenant: string, id: string): Promise<ResponseRecord | undefined> {
    const stored = isId(id) ? await this.#parts.responses.get(tenant, id) : undefined
    if (stored === undefined || stored.status === 'deleted') return undefined
    const { place, status, createdAtSec, reply, previousResponseId, conversationId, facts } = stored
    let { input = [], output = [] } = stored
    if (place !== null) {
      const turn = await this.#parts.turns.get(tenant, turnId(place.chain, place.turn))
      // The response was deleted between the two reads.
      if (turn === undefined || turn.id !== id) return undefined
      ;({ input, output } = turn)
    }
    return { id, createdAtSec, status, reply, input, output, previousResponseId, conversationId, facts }
  }

  delete(tenant: string, id: string): Promise<boolean> {
    const { responses, ages, turns, items, waitingJobs, marks } = this.#parts
    return retryOnConflict(async () => {
      const before = isId(id) ? await responses.read(tenant, id) : undefined
      if (before === undefined || before.value.status === 'deleted') return false
      const { place, createdAtSec, previousResponseId } = before.value
      const bytes = (await ages.get(tenant, ageId(createdAtSec, id))) ?? 0
      const left: StoredResponse = {
        createdAtSec,
        status: 'deleted',
        reply: {},
        previousResponseId,
        conversationId: null,
        facts: {},
        place,
      }
      const list = new ChangeList(tenant)
        .put(responses, id, left, before.version)
        .put(ages, ageId(createdAtSec, id), 0)
      if (place === null) {
        list.delete(waitingJobs, id)
      } else {
        const turn = await turns.get(tenant, turnId(place.chain, place.turn))
        list.put(turns, turnId(place.chain, place.turn), { id: '', input: [], output: [] })
        list.mark(marks, place.chain)
        await removeTurnPointers(tenant, list, items, itemsOf(turn))
      }
      if ((await this.#parts.store.write(list.changes, SYNCED)) === null) return CONFLICT
      this.#usage.add(tenant, -bytes)
      return true
    })
  }

  loadChain(tenant: string, previousResponseId: string): Promise<LoadedHistory | HistoryProblem> {
    return this.#chains.load(tenant, previousResponseId)
  }
}

/** JSON of a `StoredResponse`. */
function toStored({ id: _, ...record }: ResponseRecord): JsonText {
  return new JsonText(JSON.stringify({ ...record, place: null }))
}
