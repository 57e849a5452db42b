/** Builds the changes of one write to history, and repeats a write whose conditions failed. */
import {
  type Change,
  type Collection,
  JsonText,
  type RangeOptions,
  type StoredRecord,
  type StoreService,
} from '#kernel'
import { pagesOf, uuidV7 } from '#shared'
import { ageId, type Collections, nowSec, type StoredConversation } from './collections.ts'
import { historyErrors } from './errors.ts'

const MARK_MS = 86_400_000
const MAX_ATTEMPTS = 200
const MAX_PAUSE_MS = 20
export const SYNCED = { durability: 'synced' } as const
export const CONFLICT = Symbol('conflict')

/** Builds the changes of one write of a tenant. */
export class ChangeList {
  readonly changes: Change[] = []
  textBytes = 0
  readonly #tenant: string

  constructor(tenant: string) {
    this.#tenant = tenant
  }

  put<T>({ name }: Collection<T>, id: string, value: T | JsonText, onlyIf?: string | null): this {
    if (value instanceof JsonText) this.textBytes += Buffer.byteLength(value.text)
    this.changes.push({ kind: 'put', collection: name, tenant: this.#tenant, id, value, onlyIf })
    return this
  }

  /** Marks a deletion inside a chain or conversation; kept longer than any cache entry. */
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

/** Deletes all records of a range, a page per write. */
export async function deleteRange<T>(
  store: StoreService,
  collection: Collection<T>,
  tenant: string,
  bounds: RangeOptions = {},
): Promise<void> {
  for await (const records of pagesOf(collection, tenant, bounds)) {
    const list = new ChangeList(tenant)
    for (const { id } of records) list.delete(collection, id)
    if (list.changes.length > 0) await store.write(list.changes)
  }
}

/** Stores a changed conversation and moves it to the end of the order of age. @param before null for a new one */
export function putConversation(
  list: ChangeList,
  { conversations, conversationAges }: Collections,
  id: string,
  value: StoredConversation,
  before: StoredRecord<StoredConversation> | null,
): void {
  if (before !== null) list.delete(conversationAges, ageId(before.value.changedAtSec, id))
  list
    .put(conversations, id, value, before?.version ?? null)
    .put(conversationAges, ageId(value.changedAtSec, id), value.bytes)
}

/** Stores a conversation with other members and more bytes. @returns it */
export function changeConversation(
  list: ChangeList,
  collections: Collections,
  found: StoredRecord<StoredConversation>,
  addedBytes: number,
  change: Partial<Pick<StoredConversation, 'next' | 'metadata'>> = {},
): StoredConversation {
  const bytes = found.value.bytes + addedBytes
  const value = { ...found.value, ...change, changedAtSec: nowSec(), bytes }
  putConversation(list, collections, found.id, value, found)
  return value
}

/** Deletes a conversation; its items become inaccessible and are deleted later. */
export function deleteConversation(
  list: ChangeList,
  { conversations, conversationAges, trash, marks }: Collections,
  { id, value, version }: StoredRecord<StoredConversation>,
): void {
  list
    .delete(conversations, id, version)
    .delete(conversationAges, ageId(value.changedAtSec, id))
    .put(trash, id, 0)
    .mark(marks, id)
}

/**
 * Repeats a read-modify-write until its conditional write succeeds.
 * @param attempt returns CONFLICT if a condition of its write failed; gets the number of failed attempts
 * @throws history_contended after too many conflicts
 */
export async function retryOnConflict<R>(
  attempt: (failed: number) => Promise<R | typeof CONFLICT>,
): Promise<R> {
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const result = await attempt(tries)
    if (result !== CONFLICT) return result
    // Random, so that two writers do not conflict again.
    const pauseMs = Math.random() * Math.min(MAX_PAUSE_MS, tries)
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  throw historyErrors.history_contended()
}
