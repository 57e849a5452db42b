/**
 * The history contract: responses, items and conversations that outlive their request, and the queue of background work.
 *
 * Everything is under a tenant; another tenant's id is an unknown id. What a call has acknowledged is on disk (synced)
 * unless it says otherwise, and was written whole or not at all. Items are kept as they came; nothing in here reads
 * them beyond `id` and `type`. What a caller may have done wrong comes back as a `problem`, never as an exception; the
 * store's own errors (`storage_unavailable`, `storage_overloaded`, `storage_failed`, `record_too_large`) are thrown.
 */
import { token } from '../token.ts'
import type { JsonText } from './store.ts'

/** An item as clients see it. Its id is unique within the tenant. */
export interface HistoryItem {
  readonly id: string
  readonly type: string
  readonly [member: string]: unknown
}

type Json = Readonly<Record<string, unknown>>

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** What the API remembers of one response. */
export interface ResponseRecord {
  /** `resp_` and a version 7 UUID without hyphens, so that ids are in order of time. */
  readonly id: string
  readonly createdAtSec: number
  readonly status: ResponseStatus
  /** The reply object without `output`: every echoed member, usage, error and so on. */
  readonly reply: Json
  /** This response's own new input, normalised, with ids; never the inherited history. */
  readonly input: readonly HistoryItem[]
  readonly output: readonly HistoryItem[]
  readonly previousResponseId: string | null
  readonly conversationId: string | null
  /** What the writer needs to know later and clients never see, such as the worker. No secrets. */
  readonly facts: Json
}

/** A response at its end. What its writer has as JSON already is stored as it stands. */
export interface FinishedResponse extends Omit<ResponseRecord, 'reply'> {
  readonly reply: Json | JsonText
  /** The JSON of `output`. */
  readonly outputText?: string
  /**
   * True: its id and those of its input were made for it just now, so nothing is stored under any of them. The store then
   * need not look.
   */
  readonly hasNewIds?: boolean
}

export interface FinishOptions {
  /** The lock of the record's conversation: input and output are appended to it in the same write. */
  readonly lock?: ConversationLock
  /** The job whose work this was: it is gone with the same write. */
  readonly job?: Job
}

/**
 * `stored`: all of it. `gone`: the response was deleted or had ended already; nothing was written. `lock_lost`: the
 * conversation's lock went to somebody else; nothing was written. `conversation_gone`: the conversation was deleted
 * meanwhile; the response is stored and linked to nothing.
 */
export type FinishResult = 'stored' | 'gone' | 'lock_lost' | 'conversation_gone'

export interface ResponseHistory {
  /**
   * Stores a response that has not ended, so that it can be found at once.
   * @param isQueued also puts a job for it into the queue, in the same write
   */
  create(tenant: string, record: ResponseRecord, isQueued?: boolean): Promise<void>
  /**
   * Changes a response that has not ended: status `queued` to `in_progress`, output so far, facts. Not synced.
   * @returns false when it has ended or was deleted: whoever works on it stops then
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
   * Ends a response: record, items, chain, conversation and job in one write. Of two ends the first one counts.
   * @param record with a terminal status. One that was not created before is stored as new.
   */
  finish(tenant: string, record: FinishedResponse, options?: FinishOptions): Promise<FinishResult>
  get(tenant: string, id: string): Promise<ResponseRecord | undefined>
  /** Its own record and items go; in chains its place stays, without content. @returns false when there was none */
  delete(tenant: string, id: string): Promise<boolean>
  /** History for a follow-up of `previousResponseId`: all ancestors' items, from the root to that response itself. */
  loadChain(tenant: string, previousResponseId: string): Promise<LoadedHistory | HistoryProblem>
}

export interface LoadedHistory {
  readonly problem?: undefined
  /** Oldest first. Shared between callers: never changed. */
  readonly items: readonly HistoryItem[]
  /** About how many bytes of JSON. */
  readonly bytes: number
}

/**
 * `not_found`: unknown, deleted or not stored. `in_progress`: has not ended. `unusable`: failed or cancelled.
 * `too_long`: more than the configured responses, items or bytes; nothing is ever cut silently.
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

/** An item in a conversation. */
export interface ConversationItem {
  readonly item: HistoryItem
  /** When it was added here. */
  readonly createdAtSec: number
}

/** A new item, whose id must be new to the tenant, or the id of one that the tenant has already. */
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
  /** Only what comes after this item in that order, also when it was removed meanwhile. */
  readonly after?: string
}

export type ItemProblem =
  | { readonly problem: 'conversation_not_found' }
  | { readonly problem: 'item_not_found' | 'item_exists'; readonly id: string }

export interface ConversationHistory {
  /** @returns the conversation, or what is wrong with one of its first items; nothing is kept then */
  create(
    tenant: string,
    conversation: Conversation,
    items?: readonly NewItem[],
  ): Promise<Conversation | ItemProblem>
  get(tenant: string, id: string): Promise<Conversation | undefined>
  /**
   * Changes the metadata, whoever else does so at the same time.
   * @param change may run more than once; what it throws changes nothing and is thrown on
   */
  changeMetadata(
    tenant: string,
    id: string,
    change: (metadata: Readonly<Record<string, string>>) => Readonly<Record<string, string>>,
  ): Promise<Conversation | undefined>
  /** Items that responses own stay there. @returns false when there was none */
  delete(tenant: string, id: string): Promise<boolean>
  /** Appends all items or none, in order. `item_exists`: it is in this conversation, or the id is taken. */
  add(
    tenant: string,
    id: string,
    items: readonly NewItem[],
  ): Promise<readonly ConversationItem[] | ItemProblem>
  item(tenant: string, id: string, itemId: string): Promise<ConversationItem | ItemProblem>
  /** Removes it from this conversation only. @returns the conversation */
  removeItem(tenant: string, id: string, itemId: string): Promise<Conversation | ItemProblem>
  /** `item_not_found` is about `after`. */
  page(tenant: string, id: string, options: PageOptions): Promise<ItemPage | ItemProblem>
  /** All items, oldest first. `not_found` and `too_long` are the only problems. */
  load(tenant: string, id: string): Promise<LoadedHistory | HistoryProblem>
  /**
   * The right to append a turn: from before its history is read until `finish`. Held by a lease that renews itself, so
   * that a gateway that dies lets go by itself, and checked again within the write of `finish`.
   * @returns null while another turn has it
   */
  lock(tenant: string, id: string): Promise<ConversationLock | null>
}

export interface ConversationLock {
  readonly conversationId: string
  /** Lets go, if `finish` did not already. Never rejects. */
  release(): Promise<void>
}

/** A queued response, claimed by one gateway thread. */
export interface Job {
  readonly tenant: string
  readonly responseId: string
  /** How often it was claimed before. */
  readonly attempts: number
}

export interface BackgroundQueue {
  /**
   * Takes waiting jobs, the oldest of each tenant first. They are this thread's until they end, or until it is gone.
   * @param room how many more the tenant may have running; 0 leaves all of its jobs waiting
   */
  claim(limit: number, room: (tenant: string) => number): Promise<Job[]>
  /** Puts a claimed job back in its place. @param restMs so long others go first */
  giveBack(job: Job, restMs?: number): Promise<void>
  /** Ends a claimed job without ending its response; `finish` does both. */
  drop(job: Job): Promise<void>
  /** Jobs whose thread is gone, now this thread's: restart them, give them back, or finish their responses as failed. */
  takeLost(limit: number): Promise<Job[]>
  /** How many wait, counted up to `limit`. */
  waiting(tenant: string, limit: number): Promise<number>
}

/** Events of a stream, kept so that it can be resumed from any thread and gateway. */
export interface EventLog {
  /** Appends frames that were numbered from `firstNumber` on. Not synced, and kept for a limited time. */
  append(tenant: string, responseId: string, firstNumber: number, frames: readonly string[]): Promise<void>
  /** Removes all of a response's, before it is made anew. */
  clear(tenant: string, responseId: string): Promise<void>
  /** Frames numbered higher than `after`, in order, some at a time; none when there are no more yet. */
  read(
    tenant: string,
    responseId: string,
    after: number,
  ): Promise<readonly { number: number; frame: string }[]>
}

export interface HistoryService {
  /** Other gateways may work on the same records. */
  readonly isShared: boolean
  readonly responses: ResponseHistory
  readonly conversations: ConversationHistory
  readonly queue: BackgroundQueue
  readonly events: EventLog
  /**
   * Items by id, wherever they are: input, output or conversation. Unknown ids are left out.
   * @returns null when they are more than one request may load
   */
  resolveItems(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, HistoryItem> | null>
}

/** Kept by the SharedStore when a plugin provides one, else by the gateway's own Store. */
export const History = token<HistoryService>('history')
