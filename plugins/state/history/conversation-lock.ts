/** Lock of a conversation: a record with an expiry that its holder renews. */
import type { ConversationLock } from '#kernel'
import { ChangeList } from './change-list.ts'
import type { HistoryParts } from './collections.ts'

/** Renewals per lease period. */
const RENEWALS = 3

export class HeldLock implements ConversationLock {
  readonly conversationId: string
  readonly #tenant: string
  readonly #parts: HistoryParts
  #version: string | null
  #renewing: Promise<void> = Promise.resolve()
  readonly #timer: NodeJS.Timeout

  constructor(tenant: string, conversationId: string, version: string, parts: HistoryParts) {
    this.#tenant = tenant
    this.conversationId = conversationId
    this.#version = version
    this.#parts = parts
    this.#timer = setInterval(() => {
      this.#renewing = this.#renewing.then(() => this.#renew())
    }, parts.config.lockLeaseMs / RENEWALS)
    this.#timer.unref()
  }

  /** Waits for a renewal in progress. @returns the version of the lock record; null if the lock is lost */
  async settled(): Promise<string | null> {
    await this.#renewing
    return this.#version
  }

  /** The lock record was removed by the write that ended the turn. */
  onRemoved(): void {
    clearInterval(this.#timer)
    this.#version = null
  }

  async release(): Promise<void> {
    const version = await this.settled()
    this.onRemoved()
    if (version === null) return
    const list = new ChangeList(this.#tenant).delete(this.#parts.locks, this.conversationId, version)
    // If the release fails, the lock expires with its lease.
    await this.#parts.store.write(list.changes).catch(() => null)
  }

  async #renew(): Promise<void> {
    if (this.#version === null) return
    try {
      this.#version = await putLock(this.#tenant, this.conversationId, this.#version, this.#parts)
    } catch {
      // The store is unavailable: the lease decides whether the lock is still held.
    }
    if (this.#version === null) clearInterval(this.#timer)
  }
}

/** @param before version to replace; null requires that the lock is free @returns null if the lock is held by another */
export async function putLock(
  tenant: string,
  conversationId: string,
  before: string | null,
  { store, locks, config }: HistoryParts,
): Promise<string | null> {
  const expiresAtMs = Date.now() + config.lockLeaseMs
  const target = { collection: locks.name, tenant, id: conversationId, onlyIf: before }
  return store.write([{ kind: 'put', ...target, value: '', expiresAtMs }])
}
