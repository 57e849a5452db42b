/** Collections of history, the types of their records, and their ids. */
import {
  type Collection,
  type HistoryItem,
  isObject,
  type Logger,
  type ResponseStatus,
  type StoreService,
} from '#kernel'
import type { HistoryConfig } from './config.ts'

/** Position of a turn: its chain, its 0-based number in it, and the totals up to and including it. */
export interface ChainPosition {
  readonly chain: string
  readonly turn: number
  /** Responses since the root. */
  readonly depth: number
  /** Approximate bytes of JSON since the root. */
  readonly bytes: number
  /** The chain continues another chain or a conversation: see its record in `chains`. */
  readonly isBased: boolean
}

export interface StoredResponse {
  readonly createdAtSec: number
  /** `deleted`: only the position is kept. */
  readonly status: ResponseStatus | 'deleted'
  readonly reply: Readonly<Record<string, unknown>>
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  readonly facts: Readonly<Record<string, unknown>>
  /** Position of the turn that holds input and output; null if this record holds them. */
  readonly place: ChainPosition | null
  readonly input?: readonly HistoryItem[]
  readonly output?: readonly HistoryItem[]
}

/** Content of one response in a chain; empty if deleted. */
export interface Turn {
  readonly id: string
  readonly input: readonly HistoryItem[]
  readonly output: readonly HistoryItem[]
}

/** Input and output of a turn; none if it is missing. */
export function itemsOf(turn: Turn | undefined): HistoryItem[] {
  return turn === undefined ? [] : [...turn.input, ...turn.output]
}

/** Part of a history: the turns of a chain up to `to`, or the items of a conversation before position `to`. */
export type Segment =
  | { readonly chain: string; readonly to: number }
  | { readonly conversation: string; readonly to: number }

export interface ChainBase {
  readonly segments: readonly Segment[]
}

/** Locations of an item. */
export interface ItemPointer {
  /** Id of the turn, or of the response if it has no turn. */
  readonly turn?: string
  readonly conversations?: readonly { readonly id: string; readonly at: number }[]
}

export interface StoredConversation {
  readonly createdAtSec: number
  readonly metadata: Readonly<Record<string, string>>
  /** Position of the next item. */
  readonly next: number
  readonly changedAtSec: number
  /** Bytes of JSON of the items and the metadata. */
  readonly bytes: number
}

export interface StoredItem {
  readonly item: HistoryItem
  readonly createdAtSec: number
}

export interface ItemPosition {
  readonly at: number
  /** The item was removed; the position remains valid as a cursor. */
  readonly isGone?: boolean
}

/** What a tenant has stored. */
export interface StoredUsage {
  readonly bytes: number
  readonly conversations: number
}

export interface WaitingJob {
  readonly attempts: number
  /** Not claimed before this time, in milliseconds since 1970. */
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
  /** By base chain and chain, for each chain that branches from another. */
  readonly branches: Collection<0>
  /** By ageId: responses in order of age, with the bytes that they count for. */
  readonly ages: Collection<number>
  /** By item id. */
  readonly items: Collection<ItemPointer>
  readonly conversations: Collection<StoredConversation>
  /** By ageId: conversations in order of their last change, with the bytes that they count for. */
  readonly conversationAges: Collection<number>
  /** By positionId. */
  readonly conversationItems: Collection<StoredItem>
  /** By conversation and item id. */
  readonly positions: Collection<ItemPosition>
  readonly locks: Collection<string>
  /** By chain or conversation: a new value for each deletion inside it. */
  readonly marks: Collection<string>
  /** Deleted conversations whose items are not yet deleted. */
  readonly trash: Collection<0>
  /** One record per tenant. */
  readonly usage: Collection<StoredUsage>
  /** By response id. */
  readonly waitingJobs: Collection<WaitingJob>
  /** Under GATEWAY_TENANT, by owner and response id. */
  readonly claimedJobs: Collection<ClaimedJob>
  readonly jobOwners: Collection<0>
  /** By response id and number of the first frame. */
  readonly events: Collection<readonly string[]>
}

/** The collections with their store and settings. */
export interface HistoryParts extends Collections {
  readonly store: StoreService
  readonly config: HistoryConfig
  readonly log: Pick<Logger, 'error' | 'info' | 'warn'>
  /** Problem of a store that is down; null while it works. */
  readonly outage: () => string | null
}

export function openCollections(store: StoreService): Collections {
  return {
    responses: store.collection('responses', isStoredResponse),
    turns: store.collection('response-turns', isTurn),
    chains: store.collection('response-chains', (value) => isObject(value) && isObjects(value.segments)),
    branches: store.collection('response-branches'),
    ages: store.collection('response-ages', isNumber),
    items: store.collection('items', isObject),
    conversations: store.collection(
      'conversations',
      (value) =>
        isObject(value) &&
        isObject(value.metadata) &&
        [value.next, value.bytes, value.createdAtSec, value.changedAtSec].every(isNumber),
    ),
    conversationAges: store.collection('conversation-ages', isNumber),
    conversationItems: store.collection(
      'conversation-items',
      (value) => isObject(value) && isNumber(value.createdAtSec) && isItem(value.item),
    ),
    positions: store.collection('conversation-positions', (value) => isObject(value) && isNumber(value.at)),
    locks: store.collection('conversation-locks', isString),
    marks: store.collection('history-marks', isString),
    trash: store.collection('conversation-trash'),
    usage: store.collection(
      'history-usage',
      (value) => isObject(value) && isNumber(value.bytes) && isNumber(value.conversations),
    ),
    waitingJobs: store.collection('jobs-waiting', (value) => isObject(value) && isNumber(value.attempts)),
    claimedJobs: store.collection(
      'jobs-claimed',
      (value) =>
        isObject(value) && isNumber(value.attempts) && isString(value.tenant) && isString(value.responseId),
    ),
    jobOwners: store.collection('job-owners'),
    events: store.collection('response-events', (value) => Array.isArray(value) && value.every(isString)),
  }
}

const isNumber = (value: unknown) => typeof value === 'number'
const isString = (value: unknown) => typeof value === 'string'
const isObjects = (value: unknown) => Array.isArray(value) && value.every(isObject)

function isItem(value: unknown): boolean {
  return isObject(value) && isString(value.id) && isString(value.type)
}

function isItems(value: unknown): boolean {
  return Array.isArray(value) && value.every(isItem)
}

function isTurn(value: unknown): boolean {
  return isObject(value) && isString(value.id) && isItems(value.input) && isItems(value.output)
}

function isStoredResponse(value: unknown): boolean {
  if (!isObject(value) || !isString(value.status) || !isObject(value.reply) || !isObject(value.facts))
    return false
  if (!isNumber(value.createdAtSec)) return false
  const { place, input = [], output = [] } = value
  return place === null
    ? isItems(input) && isItems(output)
    : isObject(place) && isString(place.chain) && [place.turn, place.depth, place.bytes].every(isNumber)
}

/** Whether the id is well-formed; any other id is treated as unknown. */
export function isId(id: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(id)
}

/** Whether the response has not ended. */
export function isRunning({ status }: { readonly status: StoredResponse['status'] }): boolean {
  return status === 'queued' || status === 'in_progress'
}

export function turnId(chain: string, turn: number): string {
  return `${chain}.${padded(turn)}`
}

export function positionId(conversation: string, at: number): string {
  return `${conversation}.${padded(at)}`
}

/** Range of ids that start with the name and a dot. */
export function within(name: string): { from: string; to: string } {
  return { from: `${name}.`, to: `${name}/` }
}

export function ageId(createdAtSec: number, id: string): string {
  return `${padded(createdAtSec)}.${id}`
}

/** @returns time in seconds and id of the record */
export function splitAgeId(ageId: string): { atSec: number; id: string } {
  const dot = ageId.indexOf('.')
  return { atSec: Number(ageId.slice(0, dot)), id: ageId.slice(dot + 1) }
}

export function nowSec(): number {
  return Math.floor(Date.now() / 1_000)
}

export function padded(number: number): string {
  return String(number).padStart(12, '0')
}
