/** Responses: stored when they begin, changed while they run, ended once, deleted for good. */
import type {
  FinishedResponse,
  FinishOptions,
  FinishResult,
  HistoryItem,
  HistoryProblem,
  LoadedHistory,
  ResponseHistory,
  ResponseRecord,
  StoreService,
} from '#kernel'
import type { ChainReader } from './chain-reader.ts'
import {
  ageId,
  ChangeList,
  type Collections,
  isId,
  isRunning,
  type StoredResponse,
  turnId,
} from './collections.ts'
import { ResponseEnd } from './response-end.ts'
import { again, tryUntil } from './try-until.ts'

const MAX_CREATED = 20_000
const SYNCED = { durability: 'synced' } as const

export class StoredResponses implements ResponseHistory {
  readonly #store: StoreService
  readonly #collections: Collections
  readonly #chains: ChainReader
  readonly #end: ResponseEnd
  /** Of this thread and still running: their end need not find out. */
  readonly #created = new Set<string>()

  constructor(store: StoreService, collections: Collections, chains: ChainReader) {
    this.#store = store
    this.#collections = collections
    this.#chains = chains
    this.#end = new ResponseEnd(store, collections, chains)
  }

  async create(tenant: string, record: ResponseRecord, isQueued = false): Promise<void> {
    const { responses, ages, waitingJobs } = this.#collections
    const list = new ChangeList(tenant)
      .put(responses, record.id, toStored(record), null)
      .put(ages, ageId(record.createdAtSec, record.id), 0)
    if (isQueued) list.put(waitingJobs, record.id, { attempts: 0 })
    const isNew = (await this.#store.write(list.changes, SYNCED)) !== null
    if (!isNew) throw new TypeError(`response ${record.id} exists`)
    this.#created.add(record.id)
    for (const oldest of this.#created) {
      if (this.#created.size <= MAX_CREATED) break
      this.#created.delete(oldest)
    }
  }

  update(tenant: string, id: string, change: Parameters<ResponseHistory['update']>[2]): Promise<boolean> {
    const { responses } = this.#collections
    return tryUntil(async () => {
      const before = isId(id) ? await responses.read(tenant, id) : undefined
      if (before === undefined || !isRunning(before.value)) return false
      const list = new ChangeList(tenant).put(responses, id, { ...before.value, ...change }, before.version)
      return (await this.#store.write(list.changes)) === null ? again : true
    })
  }

  finish(tenant: string, record: FinishedResponse, options: FinishOptions = {}): Promise<FinishResult> {
    const isNew = !this.#created.delete(record.id) && options.job === undefined
    return this.#end.finish(tenant, record, options, isNew)
  }

  async get(tenant: string, id: string): Promise<ResponseRecord | undefined> {
    const stored = isId(id) ? await this.#collections.responses.get(tenant, id) : undefined
    if (stored === undefined || stored.status === 'deleted') return undefined
    const { place, status, createdAtSec, reply, previousResponseId, conversationId, facts } = stored
    let { input = [], output = [] } = stored
    if (place !== null) {
      const turn = await this.#collections.turns.get(tenant, turnId(place.chain, place.turn))
      // Deleted between the two reads.
      if (turn === undefined || turn.id !== id) return undefined
      ;({ input, output } = turn)
    }
    return { id, createdAtSec, status, reply, input, output, previousResponseId, conversationId, facts }
  }

  delete(tenant: string, id: string): Promise<boolean> {
    const { responses, turns, waitingJobs, marks } = this.#collections
    return tryUntil(async () => {
      const before = isId(id) ? await responses.read(tenant, id) : undefined
      if (before === undefined || before.value.status === 'deleted') return false
      const { place, createdAtSec, previousResponseId } = before.value
      const left: StoredResponse = {
        createdAtSec,
        status: 'deleted',
        reply: {},
        previousResponseId,
        conversationId: null,
        facts: {},
        place,
      }
      const list = new ChangeList(tenant).put(responses, id, left, before.version)
      if (place === null) {
        list.delete(waitingJobs, id)
      } else {
        const turn = await turns.get(tenant, turnId(place.chain, place.turn))
        list.put(turns, turnId(place.chain, place.turn), { id: '', input: [], output: [] })
        list.mark(marks, place.chain)
        await this.#dropPointers(tenant, list, [...(turn?.input ?? []), ...(turn?.output ?? [])])
      }
      return (await this.#store.write(list.changes, SYNCED)) === null ? again : true
    })
  }

  loadChain(tenant: string, previousResponseId: string): Promise<LoadedHistory | HistoryProblem> {
    return this.#chains.load(tenant, previousResponseId)
  }

  /** Items that a conversation has too are found there from now on. */
  async #dropPointers(tenant: string, list: ChangeList, turnItems: readonly HistoryItem[]): Promise<void> {
    const { items } = this.#collections
    const found = await Promise.all(turnItems.map(({ id }) => items.read(tenant, id)))
    for (const [index, pointer] of found.entries()) {
      if (pointer === undefined) continue
      const { conversations } = pointer.value
      const { id } = turnItems[index]
      if (conversations === undefined) list.delete(items, id, pointer.version)
      else list.put(items, id, { conversations }, pointer.version)
    }
  }
}

function toStored({ id: _, ...record }: ResponseRecord): StoredResponse {
  return { ...record, place: null }
}
