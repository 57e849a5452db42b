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
import { ChangeList, CONFLICT, changeConversation, retryOnConflict, SYNCED } from './change-list.ts'
import {
  ageId,
  type ChainPosition,
  type HistoryParts,
  type ItemPointer,
  isId,
  isRunning,
  positionId,
  type Segment,
  type StoredConversation,
  type StoredResponse,
  turnId,
} from './collections.ts'
import { HeldLock } from './conversation-lock.ts'
import type { TenantUsage } from './tenant-usage.ts'

const FRESH_MS = 60_000

/** JSON of input and output, stored in the turn, or in the response record if there is no turn. */
interface ItemTexts {
  readonly input: string
  readonly output: string
}

/** One attempt to store the end of a response. */
interface Attempt {
  readonly tenant: string
  readonly record: FinishedResponse
  readonly texts: ItemTexts
  readonly lock: HeldLock | null
  readonly list: ChangeList
  /** Later attempts read what the first one assumes. */
  readonly isFirst: boolean
  /** Condition of records that must be new; each costs a read, so generated ids have none at first. */
  readonly ifNew: null | undefined
}

/** Records that an attempt depends on. */
interface Past {
  /** The response itself, stored before, and the bytes that it counts for. */
  readonly before?: StoredRecord<StoredResponse>
  readonly beforeBytes: number
  /** Of the previous response. */
  readonly parent: ChainPosition | null
  readonly conversation?: StoredRecord<StoredConversation>
  readonly seenLock?: StoredRecord<string>
}

/** A position, and the segments that come before the chain. */
interface Place {
  readonly place: ChainPosition
  readonly base: readonly Segment[]
}

/** Of a new response that continues nothing. Most do, so that they wait for nothing but their write. */
const NO_PAST: Past = { beforeBytes: 0, parent: null }
const NOT_LINKED: ReadonlyMap<string, { id: string; at: number }> = new Map()

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
    const result = await retryOnConflict((failed) =>
      this.#attempt(tenant, record, options, lock, failed === 0, isNew),
    )
    if (result === 'stored' || result === 'conversation_gone') lock?.onRemoved()
    return result
  }

  async #attempt(
    tenant: string,
    record: FinishedResponse,
    options: FinishOptions,
    lock: HeldLock | null,
    isFirst: boolean,
    isNew: boolean,
  ): Promise<FinishResult | typeof CONFLICT> {
    const { responses, ages, locks } = this.#parts
    const lockVersion = lock === null ? null : await lock.settled()
    if (lock !== null && lockVersion === null) return 'lock_lost'
    const { id, status, input, output, previousResponseId } = record
    const age = ageId(record.createdAtSec, id)
    const isSurelyNew = isFirst && isNew
    const past =
      isSurelyNew && previousResponseId === null && lock === null
        ? NO_PAST
        : await this.#read(tenant, record, lock, isFirst, isSurelyNew)
    const { before, beforeBytes, conversation, seenLock } = past
    if (before !== undefined && !isRunning(before.value)) return 'gone'
    if (lock !== null && !isFirst && seenLock?.version !== lockVersion) return 'lock_lost'
    const list = new ChangeList(tenant)
    const texts = itemTextsOf(record)
    const isUsable = status === 'completed' || status === 'incomplete'
    const isUnconditional = isSurelyNew && lock === null && isUsable && record.hasNewIds === true
    const ifNew = isUnconditional ? undefined : null
    const attempt = { tenant, record, texts, lock, list, isFirst, ifNew }
    const turn = isUsable ? await this.#addTurn(attempt, past) : null
    const place = turn?.place ?? null
    list.put(responses, id, responseText(record, place, texts), before?.version ?? ifNew)
    list.put(ages, age, list.textBytes - (turn?.conversationBytes ?? 0))
    if (lock !== null && lockVersion !== null) list.delete(locks, lock.conversationId, lockVersion)
    const { job } = options
    const ended = job instanceof JobClaim ? [job.ending(this.#parts.claimedJobs)] : []
    if ((await this.#parts.store.write([...list.changes, ...ended], SYNCED)) === null) return CONFLICT
    this.#usage.add(tenant, list.textBytes - beforeBytes)
    if (place !== null) this.#chains.onWritten(tenant, id, previousResponseId, place, [...input, ...output])
    return lock !== null && isUsable && conversation === undefined ? 'conversation_gone' : 'stored'
  }

  async #read(
    tenant: string,
    { id, createdAtSec, previousResponseId }: FinishedResponse,
    lock: HeldLock | null,
    isFirst: boolean,
    isSurelyNew: boolean,
  ): Promise<Past> {
    const { responses, ages, conversations, locks } = this.#parts
    const [before, beforeBytes = 0, parent, conversation, seenLock] = await Promise.all([
      // The condition of the write checks that a new record does not exist.
      isSurelyNew ? undefined : responses.read(tenant, id),
      isSurelyNew ? undefined : ages.get(tenant, ageId(createdAtSec, id)),
      previousResponseId === null ? null : this.#placeOfParent(tenant, previousResponseId),
      lock === null ? undefined : conversations.read(tenant, lock.conversationId),
      lock === null || isFirst ? undefined : locks.read(tenant, lock.conversationId),
    ])
    return { before, beforeBytes, parent, conversation, seenLock }
  }

  /** @returns its position in the chain, and the bytes that it adds to the conversation */
  async #addTurn(
    attempt: Attempt,
    { parent, conversation }: Past,
  ): Promise<{ place: ChainPosition; conversationBytes: number }> {
    const { turns, chains, branches } = this.#parts
    const { list, lock, record, texts } = attempt
    const { place, base } =
      parent === null ? rootOf(record.id, texts, conversation) : await this.#placeAfter(attempt, parent)
    const turn = turnId(place.chain, place.turn)
    // The first turn of a chain has the id of the response, whose record has the condition.
    const isConditional = place.turn > 0 || !attempt.isFirst
    list.put(turns, turn, turnText(record.id, texts), isConditional ? null : undefined)
    if (base.length > 0) list.put(chains, place.chain, { segments: base })
    const last = base.at(-1)
    if (last !== undefined && 'chain' in last) list.put(branches, `${last.chain}.${place.chain}`, 0)
    const bytes = list.textBytes
    const linked =
      conversation === undefined || lock === null
        ? NOT_LINKED
        : await this.#addToConversation(attempt, lock, conversation)
    const conversationBytes = list.textBytes - bytes
    await this.#addPointers(attempt, turn, linked)
    return { place, conversationBytes }
  }

  async #placeAfter({ tenant, record, texts, isFirst }: Attempt, parent: ChainPosition): Promise<Place> {
    const next = turnId(parent.chain, parent.turn + 1)
    // Checked only after a conflict, because the parent is nearly always the end of its chain.
    const isTaken = !isFirst && (await this.#parts.turns.get(tenant, next)) !== undefined
    if (!isTaken) return { place: nextPosition(parent, texts), base: [] }
    const inherited = parent.isBased ? await this.#parts.chains.get(tenant, parent.chain) : undefined
    const base = [...(inherited?.segments ?? []), { chain: parent.chain, to: parent.turn }]
    return { place: { ...nextPosition(parent, texts), chain: record.id, turn: 0, isBased: true }, base }
  }

  /** @returns positions of the added items */
  async #addToConversation(
    { tenant, list, record }: Attempt,
    { conversationId }: HeldLock,
    conversation: StoredRecord<StoredConversation>,
  ): Promise<ReadonlyMap<string, { id: string; at: number }>> {
    const linked = new Map<string, { id: string; at: number }>()
    const { conversationItems, positions } = this.#parts
    const { input, output, createdAtSec } = record
    const bytes = list.textBytes
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
    changeConversation(list, this.#parts, conversation, list.textBytes - bytes, { next: at })
    return linked
  }

  /** Existing pointers of client-supplied ids are not changed. */
  async #addPointers(
    { tenant, list, record, isFirst, ifNew }: Attempt,
    turn: string,
    linked: ReadonlyMap<string, { id: string; at: number }>,
  ): Promise<void> {
    const { items } = this.#parts
    const { input, output } = record
    const ids = input.map(({ id }) => id)
    // Ids generated just now are almost certainly new; the condition of the write makes sure.
    const isSure = ifNew === undefined || (isFirst && ids.every(isFreshId))
    const taken = isSure ? [] : await items.getMany(tenant, ids)
    const seen = new Set<string>()
    for (const [index, id] of ids.entries()) {
      if (taken[index] !== undefined || seen.has(id)) continue
      seen.add(id)
      list.put(items, id, pointerTo(turn, linked.get(id)), ifNew)
    }
    for (const { id } of output) if (!seen.has(id)) list.put(items, id, pointerTo(turn, linked.get(id)))
  }

  async #placeOfParent(tenant: string, previousResponseId: string): Promise<ChainPosition | null> {
    const known = this.#chains.placeOf(tenant, previousResponseId)
    return known ?? (await this.#parts.responses.get(tenant, previousResponseId))?.place ?? null
  }
}

function pointerTo(turn: string, link: { id: string; at: number } | undefined): ItemPointer {
  return link === undefined ? { turn } : { turn, conversations: [link] }
}

/** Whether the id ends with a version 7 UUID of the last minute. */
function isFreshId(id: string): boolean {
  const uuid = /_([0-9a-f]{12})7[0-9a-f]{19}$/.exec(id)
  return uuid !== null && Math.abs(Date.now() - Number.parseInt(uuid[1], 16)) < FRESH_MS
}

/** Place of the first turn of a new chain, which continues a conversation that has items. */
function rootOf(
  id: string,
  { input, output }: ItemTexts,
  conversation: StoredRecord<StoredConversation> | undefined,
): Place {
  const to = conversation?.value.next ?? 0
  const base = conversation === undefined || to === 0 ? [] : [{ conversation: conversation.id, to }]
  const bytes = input.length + output.length
  return { place: { chain: id, turn: 0, depth: 1, bytes, isBased: base.length > 0 }, base }
}

/** Position after the parent in the same chain. */
function nextPosition(
  { chain, turn, depth, bytes, isBased }: ChainPosition,
  { input, output }: ItemTexts,
): ChainPosition {
  const grown = bytes + input.length + output.length
  return { chain, turn: turn + 1, depth: depth + 1, bytes: grown, isBased }
}

function itemTextsOf({ input, output, outputText }: FinishedResponse): ItemTexts {
  return { input: JSON.stringify(input), output: outputText ?? JSON.stringify(output) }
}

/** JSON of a `Turn`. */
function turnText(id: string, { input, output }: ItemTexts): JsonText {
  return new JsonText(`{"id":${JSON.stringify(id)},"input":${input},"output":${output}}`)
}

/** JSON of a `StoredResponse`. */
function responseText(record: FinishedResponse, place: ChainPosition | null, items: ItemTexts): JsonText {
  const { createdAtSec, status, reply, previousResponseId, conversationId, facts } = record
  const replyText = reply instanceof JsonText ? reply.text : JSON.stringify(reply)
  const past = `"previousResponseId":${idText(previousResponseId)},"conversationId":${idText(conversationId)}`
  const head = `{"createdAtSec":${createdAtSec},"status":"${status}","reply":${replyText},${past}`
  const tail = `,"facts":${JSON.stringify(facts)},"place":${place === null ? 'null' : JSON.stringify(place)}`
  return new JsonText(
    place === null ? `${head}${tail},"input":${items.input},"output":${items.output}}` : `${head}${tail}}`,
  )
}

function idText(id: string | null): string {
  return id === null ? 'null' : JSON.stringify(id)
}
