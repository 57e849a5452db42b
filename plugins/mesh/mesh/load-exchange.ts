/**
 * Exchanges with the other gateways how many requests each has in flight to which worker. The sum over the others goes into
 * the shared counters, where load policies find it.
 */
import type { MeshChannel, MeshService, WorkerBalance } from '#kernel'
import { WorkerHashes } from '#shared'

/**
 * Interval at which this gateway reads its own requests in flight, by the number of gateways: the older the counts, the more
 * gateways pick the same worker at once; the more gateways, the more messages each reads. A change is sent at once,
 * unchanged counts every second. Without requests the interval is the longest one.
 */
const ROUND_MS_PER_MEMBER = 10
const MIN_ROUND_MS = 50
const MAX_ROUND_MS = 250
const REPEAT_MS = 1_000
/** The loads of a gateway are dropped after this time without a message. */
const SILENT_MS = 2_500
/** Workers that one gateway may report, as many as a gateway can have. */
const MAX_REPORTED = 65_536

type Balance = Pick<WorkerBalance, 'workers' | 'inFlight' | 'inFlightElsewhere' | 'setInFlightElsewhere'>

interface Report {
  readonly loads: Loads
  readonly heardAtMs: number
}

export class LoadExchange {
  readonly #balance: Balance
  readonly #mesh: Pick<MeshService, 'members'>
  readonly #channel: MeshChannel
  readonly #hashes = new WorkerHashes()
  /** By name of the gateway. */
  readonly #reports = new Map<string, Report>()
  #sent: readonly Buffer[] = encodeLoads(new Map())
  #sentAtMs = 0
  /** Nothing is in flight here, and the others know. */
  #isIdle = false
  #timer: NodeJS.Timeout | null = null

  /** Call in `register`. */
  constructor(mesh: Pick<MeshService, 'members' | 'channel' | 'onMembers'>, balance: Balance) {
    this.#mesh = mesh
    this.#balance = balance
    this.#channel = mesh.channel('loads')
    this.#channel.onMessage((message, from) => this.#receive(message, from))
    mesh.onMembers(() => {
      for (const name of this.#reports.keys()) if (!this.#isPresent(name)) this.#replace(name, null)
    })
  }

  start(): void {
    this.follow()
    this.#schedule()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  /** Call it after each change of the worker table. */
  follow(): void {
    const { workers } = this.#balance
    this.#hashes.follow(workers)
    const sums = new Map<number, number>()
    for (const { loads } of this.#reports.values())
      for (const [hash, count] of loads) {
        const slot = this.#hashes.find(hash)?.slot
        if (slot !== undefined) sums.set(slot, (sums.get(slot) ?? 0) + count)
      }
    for (const { slot } of workers) this.#balance.setInFlightElsewhere(slot, sums.get(slot) ?? 0)
  }

  #schedule(): void {
    const { length } = this.#mesh.members
    // Or there is no receiver.
    const roundMs = this.#isIdle || length < 2 ? MAX_ROUND_MS : length * ROUND_MS_PER_MEMBER
    this.#timer = setTimeout(
      () => {
        this.#round()
        this.#schedule()
      },
      Math.min(Math.max(roundMs, MIN_ROUND_MS), MAX_ROUND_MS),
    )
  }

  #round(): void {
    const nowMs = performance.now()
    for (const [name, { heardAtMs }] of this.#reports)
      if (nowMs - heardAtMs > SILENT_MS) this.#replace(name, null)
    const loads = this.#ownLoads()
    const message = encodeLoads(loads)
    const isSame =
      message.length === this.#sent.length && message.every((part, at) => part.equals(this.#sent[at]))
    this.#isIdle = isSame && loads.size === 0
    if (isSame && (loads.size === 0 || nowMs - this.#sentAtMs < REPEAT_MS)) return
    this.#sent = message
    this.#sentAtMs = nowMs
    for (const part of message) this.#channel.send(part)
  }

  #ownLoads(): Loads {
    const loads = new Map<number, number>()
    for (const worker of this.#balance.workers) {
      const count = this.#balance.inFlight(worker.slot)
      const hash = count > 0 ? this.#hashes.of(worker) : undefined
      if (hash !== undefined) loads.set(hash, count)
    }
    return loads
  }

  #receive(message: Buffer, from: string): void {
    const decoded = decodeLoads(message)
    if (decoded === null || !this.#isPresent(from)) return
    const known = decoded.isFirst ? [] : (this.#reports.get(from)?.loads ?? [])
    const loads = new Map([...known, ...decoded.loads])
    if (loads.size <= MAX_REPORTED) this.#replace(from, loads)
  }

  /** @param loads null forgets the gateway */
  #replace(from: string, loads: Loads | null): void {
    this.#add(this.#reports.get(from)?.loads, -1)
    if (loads === null) this.#reports.delete(from)
    else this.#reports.set(from, { loads, heardAtMs: performance.now() })
    this.#add(loads, 1)
  }

  #add(loads: Loads | null | undefined, sign: 1 | -1): void {
    for (const [hash, count] of loads ?? []) {
      const slot = this.#hashes.find(hash)?.slot
      if (slot === undefined) continue
      this.#balance.setInFlightElsewhere(slot, this.#balance.inFlightElsewhere(slot) + sign * count)
    }
  }

  #isPresent(name: string): boolean {
    return this.#mesh.members.some((member) => member.name === name && member.status !== 'Down')
  }
}

/**
 * Messages of the channel `loads`: the requests that a gateway has in flight.
 *
 * ```
 * version (1 byte) | part (1 byte, from 0) | worker hash (6 bytes), requests (2 bytes) | …
 * ```
 * Numbers are little-endian. A message replaces the earlier ones of its sender; further parts add to it.
 */
const VERSION = 1
const HEADER_BYTES = 2
const HASH_BYTES = 6
const ENTRY_BYTES = 8
/** Entries of a part, which stays below 64 KiB. */
const PART_ENTRIES = 8_000
const MAX_REQUESTS = 0xffff

/** Requests in flight by worker hash; workers without any are left out. */
type Loads = ReadonlyMap<number, number>

/** @returns the parts of the message, at least one */
export function encodeLoads(loads: Loads): Buffer[] {
  const entries = [...loads]
  const parts: Buffer[] = []
  do {
    const from = parts.length * PART_ENTRIES
    const own = entries.slice(from, from + PART_ENTRIES)
    const part = Buffer.allocUnsafe(HEADER_BYTES + own.length * ENTRY_BYTES)
    part[0] = VERSION
    part[1] = parts.length
    for (let at = HEADER_BYTES, i = 0; i < own.length; i++, at += ENTRY_BYTES) {
      part.writeUIntLE(own[i][0], at, HASH_BYTES)
      part.writeUInt16LE(Math.min(own[i][1], MAX_REQUESTS), at + HASH_BYTES)
    }
    parts.push(part)
  } while (parts.length * PART_ENTRIES < entries.length)
  return parts
}

/** @returns null for a message of another version or length */
export function decodeLoads(message: Buffer): { readonly isFirst: boolean; readonly loads: Loads } | null {
  if (message.length < HEADER_BYTES || message[0] !== VERSION) return null
  if ((message.length - HEADER_BYTES) % ENTRY_BYTES !== 0) return null
  const loads = new Map<number, number>()
  for (let at = HEADER_BYTES; at < message.length; at += ENTRY_BYTES)
    loads.set(message.readUIntLE(at, HASH_BYTES), message.readUInt16LE(at + HASH_BYTES))
  return { isFirst: message[1] === 0, loads }
}
