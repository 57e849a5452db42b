/**
 * Stores the end of a response in one write: record, turn, item index, conversation, lock and job. The write is
 * conditional on everything read; a turn whose position is taken starts a branch.
 */
import {
  type FinishedResponse,
  type FinishOptions,
  type FinishResult,
  type HistoryItem,
  JsonText,
  type StoredRecord,
} from '#kernel'
import { JobClaim } from './background-queue.ts'
import type { ChainReader } from './chain-reader.ts'
import { ChangeList, CONFLICT, putConversation, retryOnConflict, SYNCED } from './change-list.ts'
import {
  ageId,
  type ChainPosition,
  type HistoryParts,
  type ItemPointer,
  isId,
  isRunning,
  nowSec,
  positionId,
  type Segment,
  type StoredConversation,
  turnId,
} from './collections.ts'
import { HeldLock } from './conversation-lock.ts'
import type { TenantUsage } from './tenant-usage.ts'
import {
  type ItemTexts,
  isFreshId,
  itemTextsOf,
  nextPosition,
  responseText,
  rootPosition,
  turnText,
  turnWithoutReads,
} from './turn-records.ts'

/** Records that determine the position of a turn. */
interface Past {
  readonly parent: ChainPosition | null
  readonly conversation: StoredRecord<StoredConversation> | null
}

export class ResponseFinisher {
  readonly #parts: HistoryParts
  readonly #usage: TenantUsage
  readonly #chains: ChainReader

  constructor(parts: HistoryParts, usage: TenantUsage, chains: ChainReader) {
    this.#parts = parts
    this.#usage = usage
    this.#chains = chains
  }

  /** @param isNew the response was not created before on this thread */
  async finish(
    tenant: string,
    record: FinishedResponse,
    options: FinishOptions,
    isNew: boolean,
  ): Promise<FinishResult> {
    const lock = options.lock instanceof HeldLock ? options.lock : null
    let isFirstTry = true
    if (isNew && lock === null && options.job === undefined) {
      const change = turnWithoutReads(tenant, record, this.#parts, this.#chains)
      if (change !== null) {
        if ((await this.#parts.store.write(change.list.changes, SYNCED)) !== null) {
          this.#written(tenant, record, change.place)
          this.#usage.add(tenant, change.list.textBytes)
          return 'stored'
        }
        isFirstTry = false
      }
    }
    const result = await retryOnConflict(async () => {
      const attempt = this.#attempt(tenant, record, options, lock, isFirstTry, isNew)
      isFirstTry = false
      return await attempt
    })
    if (result === 'stored' || result === 'conversation_gone') lock?.onRemoved()
    return result
  }

  #written(
    tenant: string,
    { id, previousResponseId, input, output }: FinishedResponse,
    place: ChainPosition,
  ): void {
    this.#chains.onWritten(tenant, id, previousResponseId, place, [...input, ...output])
  }

  async #attempt(
    tenant: string,
    record: FinishedResponse,
    options: FinishOptions,
    lock: HeldLock | null,
    isFirstTry: boolean,
    isNew: boolean,
  ): Promise<FinishResult | typeof CONFLICT> {
    const { responses, ages, locks } = this.#parts
    const lockVersion = lock === null ? null : await lock.settled()
    if (lock !== null && lockVersion === null) return 'lock_lost'
    const { id } = record
    const age = ageId(record.createdAtSec, id)
    const isSurelyNew = isFirstTry && isNew
    const [before, beforeBytes = 0, parent, conversation, seenLock] = await Promise.all([
      // The condition of the write checks that a new record does not exist.
      isSurelyNew ? undefined : responses.read(tenant, id),
      isSurelyNew ? undefined : ages.get(tenant, age),
      this.#placeOfParent(tenant, record),
      lock === null ? undefined : this.#parts.conversations.read(tenant, lock.conversationId),
      lock === null || isFirstTry ? undefined : locks.read(tenant, lock.conversationId),
    ])
    if (before !== undefined && !isRunning(before.value)) return 'gone'
    if (lock !== null && !isFirstTry && seenLock?.version !== lockVersion) return 'lock_lost'
    const list = new ChangeList(tenant)
    const isUsable = record.status === 'completed' || record.status === 'incomplete'
    const past = { parent, conversation: isUsable ? (conversation ?? null) : null }
    const texts = itemTextsOf(record)
    const turn = isUsable ? await this.#addTurn(tenant, list, record, texts, past, lock, isFirstTry) : null
    const place = turn?.place ?? null
    list.put(responses, id, responseText(record, place, texts), before?.version ?? null)
    list.put(ages, age, list.textBytes - (turn?.conversationBytes ?? 0))
    if (lock !== null && lockVersion !== null) list.delete(locks, lock.conversationId, lockVersion)
    const { job } = options
    const ended = job instanceof JobClaim ? [job.ending(this.#parts.claimedJobs)] : []
    if ((await this.#parts.store.write([...list.changes, ...ended], SYNCED)) === null) return CONFLICT
    this.#usage.add(tenant, list.textBytes - beforeBytes)
    if (place !== null) this.#written(tenant, record, place)
    return lock !== null && isUsable && conversation === undefined ? 'conversation_gone' : 'stored'
  }

  /** @returns its position in the chain, and the bytes that it adds to the conversation */
  async #addTurn(
    tenant: string,
    list: ChangeList,
    record: FinishedResponse,
    texts: ItemTexts,
    past: Past,
    lock: HeldLock | null,
    isFirstTry: boolean,
  ): Promise<{ place: ChainPosition; conversationBytes: number }> {
    const { turns, chains, branches } = this.#parts
    const { place, base } = await this.#placeOf(tenant, record, past, texts, isFirstTry)
    list.put(turns, turnId(place.chain, place.turn), turnText(record.id, texts), null)
    if (base.length > 0) list.put(chains, place.chain, { segments: base })
    const last = base.at(-1)
    if (last !== undefined && 'chain' in last) list.put(branches, `${last.chain}.${place.chain}`, 0)
    const bytes = list.textBytes
    const linked = await this.#addToConversation(tenant, list, record, past, lock)
    const conversationBytes = list.textBytes - bytes
    await this.#addPointers(tenant, list, record, turnId(place.chain, place.turn), linked, isFirstTry)
    return { place, conversationBytes }
  }

  async #placeOf(
    tenant: string,
    { id }: FinishedResponse,
    { parent, conversation }: Past,
    texts: ItemTexts,
    isFirstTry: boolean,
  ): Promise<{ place: ChainPosition; base: readonly Segment[] }> {
    if (parent === null) {
      const to = conversation?.value.next ?? 0
      const base = conversation === null || to === 0 ? [] : [{ conversation: conversation.id, to }]
      return { place: rootPosition(id, texts, base.length > 0), base }
    }
    const next = turnId(parent.chain, parent.turn + 1)
    // Checked only after a conflict, because the parent is nearly always the end of its chain.
    const isTaken = !isFirstTry && (await this.#parts.turns.get(tenant, next)) !== undefined
    if (!isTaken) return { place: nextPosition(parent, texts), base: [] }
    const inherited = parent.isBased ? await this.#parts.chains.get(tenant, parent.chain) : undefined
    const base = [...(inherited?.segments ?? []), { chain: parent.chain, to: parent.turn }]
    return { place: { ...nextPosition(parent, texts), chain: id, turn: 0, isBased: true }, base }
  }

  /** @returns positions of the added items */
  async #addToConversation(
    tenant: string,
    list: ChangeList,
    { input, output, createdAtSec }: FinishedResponse,
    { conversation }: Past,
    lock: HeldLock | null,
  ): Promise<ReadonlyMap<string, { id: string; at: number }>> {
    const linked = new Map<string, { id: string; at: number }>()
    if (conversation === null || lock === null) return linked
    const { conversationItems, positions } = this.#parts
    const bytes = list.textBytes
    const { conversationId } = lock
    const nameOf = (item: HistoryItem) => `${conversationId}.${item.id}`
    const named = input.filter(({ id }) => isId(id))
    const seen = await positions.getMany(tenant, named.map(nameOf))
    const known = new Set(
      named.filter((_, index) => seen[index] !== undefined && !seen[index].isGone).map(({ id }) => id),
    )
    let at = conversation.value.next
    for (const item of [...input, ...output]) {
      if (known.has(item.id)) continue
      known.add(item.id)
      const text = new JsonText(JSON.stringify({ item, createdAtSec }))
      list.put(conversationItems, positionId(conversationId, at), text)
      list.put(positions, nameOf(item), { at })
      linked.set(item.id, { id: conversationId, at: at++ })
    }
    const added = list.textBytes - bytes
    const value = {
      ...conversation.value,
      next: at,
      changedAtSec: nowSec(),
      bytes: conversation.value.bytes + added,
    }
    putConversation(list, this.#parts, conversationId, value, conversation)
    return linked
  }

  /** Existing pointers of client-supplied ids are not changed. */
  async #addPointers(
    tenant: string,
    list: ChangeList,
    { input, output }: FinishedResponse,
    turn: string,
    linked: ReadonlyMap<string, { id: string; at: number }>,
    isFirstTry: boolean,
  ): Promise<void> {
    const { items } = this.#parts
    // Ids generated just now are almost certainly new; the condition of the write makes sure.
    const isSure = isFirstTry && input.every(({ id }) => isFreshId(id))
    const taken = isSure
      ? []
      : await items.getMany(
          tenant,
          input.map(({ id }) => id),
        )
    const seen = new Set<string>()
    for (const [index, { id }] of input.entries()) {
      if (taken[index] !== undefined || seen.has(id)) continue
      seen.add(id)
      list.put(items, id, pointerTo(turn, linked.get(id)), null)
    }
    for (const { id } of output) if (!seen.has(id)) list.put(items, id, pointerTo(turn, linked.get(id)))
  }

  async #placeOfParent(
    tenant: string,
    { previousResponseId }: FinishedResponse,
  ): Promise<ChainPosition | null> {
    if (previousResponseId === null) return null
    const known = this.#chains.placeOf(tenant, previousResponseId)
    return known ?? (await this.#parts.responses.get(tenant, previousResponseId))?.place ?? null
  }
}

function pointerTo(turn: string, link: { id: string; at: number } | undefined): ItemPointer {
  return link === undefined ? { turn } : { turn, conversations: [link] }
}
