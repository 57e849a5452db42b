/**
 * Keys and values of one module that the store or the mesh keeps: a table that guests use at once, with marks of what they
 * changed, which control writes. Nothing is evicted; what does not fit is rejected.
 */
import { hash } from 'node:crypto'
import { SharedLock } from './shared-lock.ts'
import { clampTtl, counter, MAX_VALUE_BYTES, type ModuleState, NOT_COUNTED } from './shared-state.ts'
import { OWN_WORDS, SLOT_BYTES, SlotTable, slotsFor } from './slot-table.ts'

const MAX_TTL_MS = 30 * 86_400_000

/** Words of the header: slots that one tenant may use, number of the last change, number of rejected values. */
const TENANT_SLOTS = OWN_WORDS
const LAST_CHANGE = OWN_WORDS + 1
const REJECTED = OWN_WORDS + 2

/** Notes of an entry: how guests changed it since it was written, number of the last change, entry of its tenant + 1. */
const CHANGE = 0
const NUMBER = 1
const TENANT = 2
/** In entries of tenants: slots in use. Other entries have 0. */
const IN_USE = 3

const NONE = 0
const SET = 1
/** The sum holds what was added. */
const ADDED = 2
const DELETED = 3

const NOTHING = new Uint8Array(0)

/** A value in the store or the mesh. */
export interface StoredValue {
  readonly value: Uint8Array
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number
  /** Hash of the tenant; null for calls without one. */
  readonly tenant: Uint8Array | null
}

export interface StateChange extends Omit<StoredValue, 'value'> {
  readonly key: Uint8Array
  /** Null if it was deleted. */
  readonly value: Uint8Array | null
  /** Sum of the increments; null if the value was set. */
  readonly added: bigint | null
  readonly number: number
}

export class StoredState implements ModuleState {
  readonly #lock: SharedLock
  readonly #table: SlotTable

  /** @param waitMs how long a call waits for the lock */
  constructor(memory: SharedArrayBuffer, owner: number, waitMs: number) {
    this.#table = new SlotTable(memory)
    this.#lock = new SharedLock(memory, owner, waitMs, () => this.#table.clear())
  }

  /** @param tenantBytes that the values of one tenant may use */
  static create(bytes: number, tenantBytes: number): SharedArrayBuffer {
    const memory = new SharedArrayBuffer(bytes)
    new SlotTable(memory).header[TENANT_SLOTS] = Math.floor(tenantBytes / SLOT_BYTES)
    return memory
  }

  get(key: Uint8Array): Uint8Array<ArrayBuffer> | null {
    return this.#lock.run(null, () => {
      const head = this.#find(key)
      return head < 0 ? null : this.#table.read(head)
    })
  }

  set(key: Uint8Array, value: Uint8Array, ttlMs: number, tenant: string | null): boolean {
    if (value.length > MAX_VALUE_BYTES) return false
    return this.#lock.run(false, () => this.#set(key, value, ttlMs, tenant) >= 0)
  }

  delete(key: Uint8Array): boolean {
    return this.#lock.run(false, () => {
      const head = this.#find(key)
      if (head < 0) return false
      const place = this.#table.note(head, TENANT) - 1
      const tenant = place < 0 ? null : this.#table.keyOf(place).slice()
      this.#release(head)
      // Remains until it was deleted in the store or the mesh too.
      this.#mark(this.#insert(key, { value: NOTHING, expiresAtMs: Infinity, tenant }), DELETED)
      return true
    })
  }

  increment(key: Uint8Array, delta: bigint, ttlMs: number, tenant: string | null): bigint {
    return this.#lock.run(NOT_COUNTED, () => {
      const head = this.#find(key)
      if (head >= 0) return this.#add(head, delta) ?? NOT_COUNTED
      // A value that was deleted or has expired is no base for those who add.
      const replaces = this.#table.find(key) >= 0
      const added = this.#set(key, counter(delta), ttlMs, tenant)
      if (added < 0) return NOT_COUNTED
      if (!replaces) {
        this.#table.setNote(added, CHANGE, ADDED)
        this.#table.setSum(added, delta)
      }
      return delta
    })
  }

  addToExisting(key: Uint8Array, delta: bigint): void {
    this.#lock.run(null, () => {
      const head = this.#find(key)
      return head < 0 ? null : this.#add(head, delta)
    })
  }

  /** Clears the table if a terminated thread held the lock. */
  releaseDead(owner: number): void {
    this.#lock.releaseDead(owner)
  }

  /** Times that the table was cleared: all values must be applied again. */
  get clears(): number {
    return this.#table.clears
  }

  /** Number of values that had no room. */
  get rejected(): number {
    return this.#table.header[REJECTED]
  }

  get usedBytes(): number {
    return this.#table.usedSlots * SLOT_BYTES
  }

  /** The oldest changes that are not written. Releases expired values. */
  changes(limit: number): StateChange[] {
    const table = this.#table
    return this.#lock.run([], () => {
      const changed: number[] = []
      for (const head of table.heads()) {
        const change = table.note(head, CHANGE)
        // An older value may still be in the store, with a later expiry.
        if (this.#isExpired(head) && change !== SET) this.#release(head)
        else if (change !== NONE) changed.push(head)
      }
      changed.sort((a, b) => table.note(a, NUMBER) - table.note(b, NUMBER))
      return changed.slice(0, limit).map((head) => this.#changeOf(head))
    })
  }

  /** Removes the mark of a change that was written, unless there was another one since. */
  settle({ key, value, added, number }: StateChange): void {
    const table = this.#table
    this.#lock.run(null, () => {
      const head = table.find(key)
      if (head < 0) return null
      if (added !== null && table.note(head, CHANGE) === ADDED) {
        const left = table.sum(head) - added
        table.setSum(head, left)
        if (left === 0n) table.setNote(head, CHANGE, NONE)
      } else if (table.note(head, NUMBER) === number) {
        if (value === null) this.#release(head)
        else table.setNote(head, CHANGE, NONE)
      }
      return null
    })
  }

  /**
   * Takes a value of the store or the mesh, unless guests have replaced it; what they added is added to it.
   * @returns false if it has no room, or the lock was not acquired
   */
  apply(key: Uint8Array, stored: StoredValue | null): boolean {
    const table = this.#table
    return this.#lock.run(false, () => {
      const head = table.find(key)
      const change = head < 0 ? NONE : table.note(head, CHANGE)
      if (change === SET || change === DELETED) return true
      if (stored === null) {
        if (head >= 0 && change === NONE) this.#release(head)
        return true
      }
      const added = change === ADDED ? table.sum(head) : 0n
      const number = head < 0 ? 0 : table.note(head, NUMBER)
      const next = this.#put(key, stored, Infinity)
      if (next < 0) return false
      if (added === 0n || table.add(next, added) === null) return true
      table.setNote(next, CHANGE, ADDED)
      table.setNote(next, NUMBER, number)
      table.setSum(next, added)
      return true
    })
  }

  /** @returns -1 if it has no room */
  #set(key: Uint8Array, value: Uint8Array, ttlMs: number, tenant: string | null): number {
    const expiresAtMs = Date.now() + clampTtl(ttlMs, MAX_TTL_MS)
    const stored = { value, expiresAtMs, tenant: tenant === null ? null : hash('sha256', tenant, 'buffer') }
    const head = this.#put(key, stored, this.#table.header[TENANT_SLOTS])
    if (head < 0) this.#table.header[REJECTED]++
    else this.#mark(head, SET)
    return head
  }

  #add(head: number, delta: bigint): bigint | null {
    const table = this.#table
    const value = table.add(head, delta)
    if (value === null) return null
    const change = table.note(head, CHANGE)
    if (change !== SET) table.setSum(head, table.sum(head) + delta)
    this.#mark(head, change === SET ? SET : ADDED)
    return value
  }

  /** @returns -1 if it has no room */
  #put(key: Uint8Array, stored: StoredValue, tenantSlots: number): number {
    const table = this.#table
    const old = table.find(key)
    const more = slotsFor(stored.value.length) - (old < 0 ? 0 : table.slotsOf(old))
    const place = stored.tenant === null ? -1 : table.find(stored.tenant)
    // Some slots stay free, so that one is found soon; one may be needed for the tenant.
    if (table.usedSlots + more + 1 > table.slotCount - table.slotCount / 16) return -1
    if (stored.tenant !== null && (place < 0 ? 0 : table.note(place, IN_USE)) + more > tenantSlots) return -1
    if (old >= 0) this.#release(old)
    return this.#insert(key, stored)
  }

  #insert(key: Uint8Array, { value, expiresAtMs, tenant }: StoredValue): number {
    const table = this.#table
    const head = table.insert(key, value, expiresAtMs, false)
    if (tenant === null) return head
    const known = table.find(tenant)
    const place = known < 0 ? table.insert(tenant, NOTHING, Infinity, false) : known
    table.setNote(place, IN_USE, table.note(place, IN_USE) + table.slotsOf(head))
    table.setNote(head, TENANT, place + 1)
    return head
  }

  #release(head: number): void {
    const table = this.#table
    const place = table.note(head, TENANT) - 1
    if (place >= 0) {
      const left = table.note(place, IN_USE) - table.slotsOf(head)
      if (left === 0) table.release(place)
      else table.setNote(place, IN_USE, left)
    }
    table.release(head)
  }

  #mark(head: number, change: number): void {
    this.#table.setNote(head, CHANGE, change)
    this.#table.setNote(head, NUMBER, ++this.#table.header[LAST_CHANGE])
  }

  #changeOf(head: number): StateChange {
    const table = this.#table
    const change = table.note(head, CHANGE)
    const place = table.note(head, TENANT) - 1
    return {
      key: table.keyOf(head).slice(),
      value: change === DELETED || this.#isExpired(head) ? null : table.read(head),
      expiresAtMs: table.expiresAtMs(head),
      tenant: place < 0 ? null : table.keyOf(place).slice(),
      added: change === ADDED ? table.sum(head) : null,
      number: table.note(head, NUMBER),
    }
  }

  /** @returns -1 if there is no value, or it was deleted or has expired */
  #find(key: Uint8Array): number {
    const head = this.#table.find(key)
    return head < 0 || this.#table.note(head, CHANGE) === DELETED || this.#isExpired(head) ? -1 : head
  }

  #isExpired(head: number): boolean {
    return this.#table.expiresAtMs(head) <= Date.now()
  }
}
