/**
 * The history contract: stored responses, items and conversations, and the queue of background jobs.
 *
 * All records belong to a tenant; ids of other tenants are unknown. Acknowledged writes are atomic and on disk (synced)
 * unless stated otherwise. Only `id` and `type` of items are interpreted. Invalid calls return a `problem`; errors of the
 * store (`storage_unavailable`, `storage_overloaded`, `storage_failed`, `record_too_large`) are thrown.
 */
import { token } from '../token.ts'
import type { JsonText } from './store.ts'

/** An item. Its id is unique within the tenant. */
export interface HistoryItem {
  readonly id: string
  readonly type: string
  readonly [member: string]: unknown
}

type Json = Readonly<Record<string, unknown>>

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** A stored response. */
export interface ResponseRecord {
  /** `resp_` and a version 7 UUID without hyphens, so that ids sort by time. */
  readonly id: string
  readonly createdAtSec: number
  readonly status: ResponseStatus
  /** The response object without `output`. */
  readonly reply: Json
  /** New input of this response, normalized, with ids; without the inherited history. */
  readonly input: readonly HistoryItem[]
  readonly output: readonly HistoryItem[]
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  /** Internal data of the writer, such as the worker. Must not contain secrets. */
  readonly facts: Json
}

/** A finished response. Members that are already JSON text are stored unchanged. */
export interface FinishedResponse extends Omit<ResponseRecord, 'reply'> {
  readonly reply: Json | JsonText
  /** The JSON of `output`. */
  readonly outputText?: string
  /**
   * Whether its id and the ids of its input were generated for it, so that the store need not check whether they exist.
   */
  readonly hasNewIds?: boolean
}

export interface FinishOptions {
  /** Lock of the conversation to which input and output are appended in the same write. */
  readonly lock?: ConversationLock
  /** Job to remove in the same write. */
  readonly job?: Job
}

/**
 * `stored`: written. `gone`: the response was deleted or had already ended; nothing was written. `lock_lost`: the lock of
 * the conversation was lost; nothing was written. `conversation_gone`: the conversation was deleted meanwhile; the
 * response is stored without it.
 */
export type FinishResult = 'stored' | 'gone' | 'lock_lost' | 'conversation_gone'

export interface ResponseHistory {
  /**
   * Stores a response that has not ended.
   * @param isQueued also adds a background job for it in the same write
   */
  create(tenant: string, record: ResponseRecord, isQueued?: boolean): Promise<void>
  /**
   * Changes a response that has not ended: status `queued` to `in_progress`, output so far, facts. Not synced.
   * @returns false if it has ended or was deleted; the caller must stop working on it
   */
  update(
    tenant: string,
    id: string,
    change: {
      readonly status?: 'in_progress'
      readonly output?: readonly HistoryItem[]
      readonly reply?: Json
      readonly facts?: Json
    },
  ): Promise<boolean>
  /**
   * Ends a response: record, items, chain, conversation and job in one write. A second end is ignored (`gone`).
   * @param record with a terminal status; stored as new if it was not created before
   */
  finish(tenant: string, record: FinishedResponse, options?: FinishOptions): Promise<FinishResult>
  get(tenant: string, id: string): Promise<ResponseRecord | undefined>
  /** Deletes record and items; its position in chains remains, without content. @returns false if it did not exist */
  delete(tenant: string, id: string): Promise<boolean>
  /** Items of all ancestors from the root up to and including `previousResponseId`. */
  loadChain(tenant: string, previousResponseId: string): Promise<LoadedHistory | HistoryProblem>
}

export interface LoadedHistory {
  readonly problem?: undefined
  /** Oldest first. Shared between callers; must not be modified. */
  readonly items: readonly HistoryItem[]
  /** Approximate bytes of JSON. */
  readonly bytes: number
}

/**
 * `not_found`: unknown, deleted or not stored. `in_progress`: has not ended. `unusable`: failed or cancelled.
 * `too_long`: exceeds the configured responses, items or bytes; histories are never truncated.
 */
export interface HistoryProblem {
  readonly problem: 'not_found' | 'in_progress' | 'unusable' | 'too_long'
}

export interface Conversation {
  /** `conv_` and a version 7 UUID without hyphens. */
  readonly id: string
  readonly createdAtSec: number
  readonly metadata: Readonly<Record<string, string>>
}

export interface ConversationItem {
  readonly item: HistoryItem
  /** Time at which it was added to the conversation. */
  readonly createdAtSec: number
}

/** A new item, whose id must be new to the tenant, or a reference to an existing item of the tenant. */
export type NewItem = { readonly item: HistoryItem } | { readonly reference: string }

export interface ItemPage {
  readonly problem?: undefined
  readonly items: readonly ConversationItem[]
  readonly hasMore: boolean
}

export interface PageOptions {
  readonly order: 'asc' | 'desc'
  /** 1 to 1,000. */
  readonly limit: number
  /** Id of the item after which the page starts; may have been removed. */
  readonly after?: string
}

export type ItemProblem =
  | { readonly problem: 'conversation_not_found' }
  | { readonly problem: 'item_not_found' | 'item_exists'; readonly id: string }

export interface ConversationHistory {
  /**
   * @returns the conversation, or a problem with one of its items; then nothing is stored
   * @throws storage_quota_exceeded (507), conversation_quota_exceeded (429)
   */
  create(
    tenant: string,
    conversation: Conversation,
    items?: readonly NewItem[],
  ): Promise<Conversation | ItemProblem>
  get(tenant: string, id: string): Promise<Conversation | undefined>
  /**
   * Changes the metadata atomically.
   * @param change may run more than once; exceptions are rethrown and nothing is changed
   */
  changeMetadata(
    tenant: string,
    id: string,
    change: (metadata: Readonly<Record<string, string>>) => Readonly<Record<string, string>>,
  ): Promise<Conversation | undefined>
  /** Items of responses remain available there. @returns false if it did not exist */
  delete(tenant: string, id: string): Promise<boolean>
  /**
   * Appends all items or none. `item_exists`: it is in this conversation, or the id is in use.
   * @throws storage_quota_exceeded (507)
   */
  add(
    tenant: string,
    id: string,
    items: readonly NewItem[],
  ): Promise<readonly ConversationItem[] | ItemProblem>
  item(tenant: string, id: string, itemId: string): Promise<ConversationItem | ItemProblem>
  /** Removes the item from this conversation only. @returns the conversation */
  removeItem(tenant: string, id: string, itemId: string): Promise<Conversation | ItemProblem>
  /** `item_not_found` refers to `after`. */
  page(tenant: string, id: string, options: PageOptions): Promise<ItemPage | ItemProblem>
  /** All items, oldest first. `not_found` and `too_long` are the only problems. */
  load(tenant: string, id: string): Promise<LoadedHistory | HistoryProblem>
  /**
   * Locks the conversation for a turn, from before its history is read until `finish`. The lock is a lease that is renewed
   * automatically, expires if the gateway dies, and is checked in the write of `finish`.
   * @returns null if another turn holds the lock
   */
  lock(tenant: string, id: string): Promise<ConversationLock | null>
}

export interface ConversationLock {
  readonly conversationId: string
  /** Releases the lock unless `finish` has. Never rejects. */
  release(): Promise<void>
}

/** A queued response, claimed by one gateway thread. */
export interface Job {
  readonly tenant: string
  readonly responseId: string
  /** Number of earlier claims. */
  readonly attempts: number
}

export interface BackgroundQueue {
  /**
   * Claims waiting jobs, the oldest of each tenant first, for this thread.
   * @param capacity number of further jobs that may run for the tenant
   */
  claim(limit: number, capacity: (tenant: string) => number): Promise<Job[]>
  /** Returns a claimed job to the queue. @param delayMs delay before it can be claimed again */
  release(job: Job, delayMs?: number): Promise<void>
  /** Removes a claimed job without ending its response; `finish` does both. */
  discard(job: Job): Promise<void>
  /** Claims jobs of dead threads, to restart them, return them, or finish their responses as failed. */
  claimLost(limit: number): Promise<Job[]>
  /** Number of waiting jobs, at most `limit`. */
  waiting(tenant: string, limit: number): Promise<number>
}

/** Events of streams, stored so that a stream can be resumed on any thread and gateway. */
export interface EventLog {
  /** Appends frames with consecutive numbers from `firstNumber`. Not synced; kept for a limited time. */
  append(tenant: string, responseId: string, firstNumber: number, frames: readonly string[]): Promise<void>
  /** Deletes all frames of a response, before it is restarted. */
  clear(tenant: string, responseId: string): Promise<void>
  /** Returns some frames with numbers above `after`, in order; empty if there are none yet. */
  read(
    tenant: string,
    responseId: string,
    after: number,
  ): Promise<readonly { number: number; frame: string }[]>
}

export interface HistoryService {
  /** Whether other gateways use the same records. */
  readonly isShared: boolean
  readonly responses: ResponseHistory
  readonly conversations: ConversationHistory
  readonly queue: BackgroundQueue
  readonly events: EventLog
  /** Problem of a store that is down; null while it works. */
  outage(): string | null
  /**
   * Checks whether the tenant may store more, before the work whose result is stored.
   * @param bytes known to be added, such as those of the request
   * @throws storage_quota_exceeded (507)
   */
  checkQuota(tenant: string, bytes: number): void | Promise<void>
  /**
   * Items by id, from responses and conversations. Unknown ids are omitted.
   * @returns null if the items exceed the limits of a request
   */
  resolveItems(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, HistoryItem> | null>
}

/** Uses the SharedStore if a plugin provides one, else the Store. */
export const History = token<HistoryService>('history')
