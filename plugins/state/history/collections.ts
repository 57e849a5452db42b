/** Everything that history keeps: one collection a line, the shape of its records, and how their ids are made. */
import type { Change, Collection, HistoryItem, JsonText, ResponseStatus, StoreService } from '#kernel'
import { uuidV7 } from '#shared'

/** Where a turn stands: its chain, its number in it from 0, and what lies before its end, itself included. */
export interface Place {
  readonly chain: string
  readonly turn: number
  /** Responses from the root on. */
  readonly depth: number
  /** About how many bytes of JSON from the root on. */
  readonly bytes: number
  /** The chain begins with something else: its record in `chains` says what. */
  readonly isBased: boolean
}

export interface StoredResponse {
  readonly createdAtSec: number
  /** `deleted`: nothing is left but its place. */
  readonly status: ResponseStatus | 'deleted'
  readonly reply: Readonly<Record<string, unknown>>
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  readonly facts: Readonly<Record<string, unknown>>
  /** Input and output are the turn's there; null: they are here. */
  readonly place: Place | null
  readonly input?: readonly HistoryItem[]
  readonly output?: readonly HistoryItem[]
}

/** The content of one response in a chain. Empty lists where it was deleted. */
export interface Turn {
  readonly id: string
  readonly input: readonly HistoryItem[]
  readonly output: readonly HistoryItem[]
}

/** Part of a history: the turns of a chain up to `to`, or the items of a conversation before position `to`. */
export type Segment =
  | { readonly chain: string; readonly to: number }
  | { readonly conversation: string; readonly to: number }

export interface ChainBase {
  readonly segments: readonly Segment[]
}

/** Where an item can be found; more than one place while it is shared. */
export interface ItemPointer {
  /** Id of the turn, or of the response while it has none. */
  readonly turn?: string
  readonly conversations?: readonly { readonly id: string; readonly at: number }[]
}

export interface StoredConversation {
  readonly createdAtSec: number
  readonly metadata: Readonly<Record<string, string>>
  /** Position of the next item. */
  readonly next: number
}

export interface StoredItem {
  readonly item: HistoryItem
  readonly createdAtSec: number
}

export interface ItemPosition {
  readonly at: number
  /** The item was removed; its position is still a place to go on from. */
  readonly isGone?: boolean
}

export interface WaitingJob {
  readonly attempts: number
  /** It rests until then, in milliseconds since 1970. */
  readonly notBeforeMs?: number
}

export interface ClaimedJob {
  readonly tenant: string
  readonly responseId: string
  readonly attempts: number
}

export interface Collections {
  readonly responses: Collection<StoredResponse>
  /** By turnId. */
  readonly turns: Collection<Turn>
  readonly chains: Collection<ChainBase>
  /** By base chain and chain, for each chain that begins inside another. */
  readonly branches: Collection<0>
  /** By ageId: responses in order of age. */
  readonly ages: Collection<0>
  /** By item id. */
  readonly items: Collection<ItemPointer>
  readonly conversations: Collection<StoredConversation>
  /** By positionId. */
  readonly conversationItems: Collection<StoredItem>
  /** By conversation and item id. */
  readonly positions: Collection<ItemPosition>
  readonly locks: Collection<string>
  /** By chain or conversation: another value each time something inside was deleted. */
  readonly marks: Collection<string>
  /** Deleted conversations whose items are still there. */
  readonly trash: Collection<0>
  /** By response id. */
  readonly waitingJobs: Collection<WaitingJob>
  /** Of the gateway's own tenant, by owner and response id. */
  readonly claimedJobs: Collection<ClaimedJob>
  readonly jobOwners: Collection<0>
  /** By response id and number of the first frame. */
  readonly events: Collection<readonly string[]>
}

export function openCollections(store: StoreService): Collections {
  return {
    responses: store.collection('responses'),
    turns: store.collection('response-turns'),
    chains: store.collection('response-chains'),
    branches: store.collection('response-branches'),
    ages: store.collection('response-ages'),
    items: store.collection('items'),
    conversations: store.collection('conversations'),
    conversationItems: store.collection('conversation-items'),
    positions: store.collection('conversation-positions'),
    locks: store.collection('conversation-locks'),
    marks: store.collection('history-marks'),
    trash: store.collection('conversation-trash'),
    waitingJobs: store.collection('jobs-waiting'),
    claimedJobs: store.collection('jobs-claimed'),
    jobOwners: store.collection('job-owners'),
    events: store.collection('response-events'),
  }
}

/** Ids that can be anybody's: everything else is an unknown id, whatever it holds. */
export function isId(id: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(id)
}

/** Has not ended. */
export function isRunning({ status }: { readonly status: StoredResponse['status'] }): boolean {
  return status === 'queued' || status === 'in_progress'
}

export function turnId(chain: string, turn: number): string {
  return `${chain}.${padded(turn)}`
}

export function positionId(conversation: string, at: number): string {
  return `${conversation}.${padded(at)}`
}

/** Ids that begin with that name and a dot. */
export function within(name: string): { from: string; to: string } {
  return { from: `${name}.`, to: `${name}/` }
}

export function ageId(createdAtSec: number, id: string): string {
  return `${padded(createdAtSec)}.${id}`
}

export function padded(number: number): string {
  return String(number).padStart(12, '0')
}

const MARK_MS = 86_400_000

/** Changes of one tenant, made with less to write. */
export class ChangeList {
  readonly changes: Change[] = []
  readonly #tenant: string

  constructor(tenant: string) {
    this.#tenant = tenant
  }

  put<T>({ name }: Collection<T>, id: string, value: T | JsonText, onlyIf?: string | null): this {
    this.changes.push({ kind: 'put', collection: name, tenant: this.#tenant, id, value, onlyIf })
    return this
  }

  /** Says that something inside a chain or conversation was deleted, for longer than anybody has it in memory. */
  mark({ name }: Collection<string>, id: string): this {
    const expiresAtMs = Date.now() + MARK_MS
    const target = { collection: name, tenant: this.#tenant, id }
    this.changes.push({ kind: 'put', ...target, value: uuidV7(), expiresAtMs })
    return this
  }

  delete({ name }: Collection<unknown>, id: string, onlyIf?: string | null): this {
    this.changes.push({ kind: 'delete', collection: name, tenant: this.#tenant, id, onlyIf })
    return this
  }

  check({ name }: Collection<unknown>, id: string, onlyIf: string | null): this {
    this.changes.push({ kind: 'check', collection: name, tenant: this.#tenant, id, onlyIf })
    return this
  }
}
