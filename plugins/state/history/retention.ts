/**
 * Deletes old and surplus responses, unused conversations and the items of deleted conversations, in small batches. The
 * text of a turn is kept while a newer response continues it; a chain is deleted with its last response.
 */
import { countRecords } from '#shared'
import { ChangeList, deleteConversation, deleteRange } from './change-list.ts'
import {
  type ChainPosition,
  type HistoryParts,
  itemsOf,
  positionId,
  splitAgeId,
  turnId,
  within,
} from './collections.ts'
import { removeConversationPointer, removeTurnPointers } from './item-index.ts'
import type { TenantUsage } from './tenant-usage.ts'

const DAY_SEC = 86_400
/** Maximum turns deleted by one write. */
const SLICE = 200

export class Retention {
  readonly #parts: HistoryParts
  readonly #usage: TenantUsage
  /** A round deletes responses of all tenants, then conversations of all tenants. */
  #isAtConversations = false
  #lastTenant: string | undefined

  constructor(parts: HistoryParts, usage: TenantUsage) {
    this.#parts = parts
    this.#usage = usage
  }

  /**
   * Deletes responses or conversations of one tenant, or items of a deleted conversation.
   * @returns `limit` if more may be left, 0 after a round over all tenants
   */
  async slice(limit: number, nowMs = Date.now()): Promise<number> {
    if (await this.#removeDeletedConversation(limit)) return limit
    const { ages, conversationAges } = this.#parts
    const collection = this.#isAtConversations ? conversationAges : ages
    const [tenant] = await collection.tenants({ after: this.#lastTenant, limit: 1 })
    if (tenant === undefined) {
      this.#lastTenant = undefined
      this.#isAtConversations = !this.#isAtConversations
      return this.#isAtConversations ? limit : 0
    }
    let removed = 0
    try {
      removed = this.#isAtConversations
        ? await this.#pruneConversations(tenant, limit, nowMs)
        : await this.prune(tenant, limit, nowMs)
    } finally {
      // After an error, such as of a damaged record, the next call continues with the next tenant.
      if (removed < limit) this.#lastTenant = tenant
    }
    // Another tenant may be next.
    return limit
  }

  /** @returns the number of responses deleted; fewer than `limit` if none is left to delete */
  async prune(tenant: string, limit: number, nowMs = Date.now()): Promise<number> {
    const { maxAgeDays, maxResponsesPerTenant } = this.#parts.config
    const oldest = (await this.#parts.ages.range(tenant, { limit })).records
    const beforeSec = oldestAllowedSec(maxAgeDays, nowMs)
    const surplus =
      maxResponsesPerTenant === null
        ? 0
        : (await countRecords(this.#parts.ages, tenant, maxResponsesPerTenant + limit)) -
          maxResponsesPerTenant
    let removed = 0
    for (const [index, { id: age, value: bytes }] of oldest.entries()) {
      const { atSec, id } = splitAgeId(age)
      if (atSec >= beforeSec && index >= surplus) break
      await this.#remove(tenant, id, age, bytes)
      removed++
    }
    return removed
  }

  async #pruneConversations(tenant: string, limit: number, nowMs: number): Promise<number> {
    const { conversations, conversationAges } = this.#parts
    const beforeSec = oldestAllowedSec(this.#parts.config.maxConversationAgeDays, nowMs)
    const { records } = await conversationAges.range(tenant, { limit })
    let removed = 0
    for (const { id: age, value: bytes, version } of records) {
      const { atSec, id } = splitAgeId(age)
      if (atSec >= beforeSec) break
      const found = await conversations.read(tenant, id)
      const list = new ChangeList(tenant).delete(conversationAges, age, version)
      const isUnchanged = found?.value.changedAtSec === atSec
      if (isUnchanged) deleteConversation(list, this.#parts, found)
      // On a conflict, the next round retries.
      const isDone = (await this.#parts.store.write(list.changes)) !== null
      if (isDone && isUnchanged) this.#usage.add(tenant, -bytes, -1)
      removed++
    }
    return removed
  }

  async #remove(tenant: string, id: string, age: string, bytes: number): Promise<void> {
    const { responses, ages, turns, items, waitingJobs, marks } = this.#parts
    const found = await responses.read(tenant, id)
    const list = new ChangeList(tenant).delete(ages, age)
    const place = found?.value.place ?? null
    if (found !== undefined) list.delete(responses, id, found.version).delete(waitingJobs, id)
    if (place !== null) list.mark(marks, place.chain)
    const turn = place === null ? undefined : await turns.get(tenant, turnId(place.chain, place.turn))
    await removeTurnPointers(tenant, list, items, itemsOf(turn))
    // On a conflict, the next round retries.
    if ((await this.#parts.store.write(list.changes)) === null) return
    this.#usage.add(tenant, -bytes)
    if (place !== null) await this.#dropChain(tenant, place)
  }

  /** Deletes the chain that ends with this turn, unless a turn or branch continues it. */
  async #dropChain(tenant: string, { chain, turn }: Pick<ChainPosition, 'chain' | 'turn'>): Promise<void> {
    const { turns, chains, branches, responses } = this.#parts
    const isContinued = (await turns.get(tenant, turnId(chain, turn + 1))) !== undefined
    if (isContinued || (await branches.range(tenant, { ...within(chain), limit: 1 })).records.length > 0)
      return
    const bounds = { from: turnId(chain, 0), to: turnId(chain, turn + 1), limit: SLICE }
    await deleteRange(this.#parts.store, turns, tenant, bounds)
    const base = (await chains.get(tenant, chain))?.segments.at(-1)
    const list = new ChangeList(tenant).delete(chains, chain)
    if (base !== undefined && 'chain' in base) list.delete(branches, `${base.chain}.${chain}`)
    await this.#parts.store.write(list.changes)
    if (base === undefined || !('chain' in base)) return
    // The chain it branched from may now be deletable too.
    const ends = await turns.range(tenant, { ...within(base.chain), reverse: true, limit: 1 })
    const end = ends.records[0]
    if (end === undefined || (await responses.get(tenant, end.value.id)) !== undefined) return
    await this.#dropChain(tenant, { chain: base.chain, turn: Number(end.id.slice(base.chain.length + 1)) })
  }

  /** @returns false if no deleted conversation is left */
  async #removeDeletedConversation(limit: number): Promise<boolean> {
    const { trash, positions, conversationItems, items } = this.#parts
    const [tenant] = await trash.tenants({ limit: 1 })
    if (tenant === undefined) return false
    const [dead] = (await trash.range(tenant, { limit: 1 })).records
    if (dead === undefined) return false
    const conversation = dead.id
    const { records } = await positions.range(tenant, { ...within(conversation), limit })
    const list = new ChangeList(tenant)
    for (const { id: name, value } of records) {
      const itemId = name.slice(conversation.length + 1)
      list.delete(positions, name).delete(conversationItems, positionId(conversation, value.at))
      await removeConversationPointer(tenant, list, items, itemId, conversation)
    }
    if (records.length === 0) list.delete(trash, conversation)
    await this.#parts.store.write(list.changes)
    return true
  }
}

/** Time before which records are too old, in seconds. */
function oldestAllowedSec(maxAgeDays: number | null, nowMs: number): number {
  return maxAgeDays === null ? 0 : Math.floor(nowMs / 1_000) - maxAgeDays * DAY_SEC
}
