/**
 * The mesh contract: what several gateways share. Control only; data threads read what control puts into shared memory.
 * A mesh of one gateway has the same contract: records are in the local store, and channels carry no messages.
 */
import { token } from './token.ts'

/**
 * `Init`: joining. `Suspected`: two seconds without a sign of life. `Down`: five seconds without one;
 * listed for a minute more. One that has left is not listed. By the clock of the mesh engine.
 */
export type MeshStatus = 'Init' | 'Alive' | 'Suspected' | 'Down' | 'Leaving'

/** One gateway of the mesh. */
export interface MeshMember {
  readonly name: string
  /** Counts the times that a gateway of this name has joined, from 1. */
  readonly incarnation: number
  /** Where its API is reached, such as `10.0.0.1:30000`. */
  readonly address: string
  /** Version of the gateway. */
  readonly software: string
  readonly status: MeshStatus
  /** Requests in flight to workers. */
  readonly inFlight: number
  /** Short hash of each section of its configuration, to find differences. */
  readonly config: Readonly<Record<string, string>>
}

/** A small record that every gateway holds in memory. */
export interface SharedRecord<T> {
  readonly value: T
  /** Grows with each change in the mesh; never used twice. */
  readonly revision: number
}

/** The records of one kind. */
export interface SharedRecords<T> {
  /** By id; complete once the mesh plugin has started. */
  readonly all: ReadonlyMap<string, SharedRecord<T>>
  /**
   * Creates, changes or removes a record. `next` gets the newest value, and is called again if another gateway was faster;
   * its exceptions cancel the change. Resolves when the change is durable, and watchers of this gateway have seen it.
   *
   * @param next returns the new value: undefined removes the record, the same object changes nothing
   * @returns the record; undefined without one
   * @throws mesh_unavailable (503), mesh_diverged (503), mesh_record_too_large (413), mesh_full (507), storage_unavailable (503)
   */
  change(id: string, next: (current: T | undefined) => T | undefined): Promise<SharedRecord<T> | undefined>
  /**
   * Called for each change from now on, of this gateway's too, in order of revision. Not called for records that exist when
   * the mesh starts.
   * @param listener `record` is undefined for a removed one
   */
  watch(listener: (id: string, record: SharedRecord<T> | undefined) => void): void
}

/** Messages to the other gateways: fast, in order by sender, and lost if a gateway is away or slow. */
export interface MeshChannel {
  /** Returns at once; dropped without a connection. @param message at most 64 KiB */
  send(message: Buffer): void
  /** Messages of other gateways. @param from name of the sender */
  onMessage(listener: (message: Buffer, from: string) => void): void
}

/** A request for tokens of a limit that gateways share. Windows are fixed ones of the engine's clock. */
export interface GrantRequest {
  /** Names the bucket; the same on every gateway. */
  readonly bucket: string
  /** Tokens per window. */
  readonly limit: number
  readonly windowMs: number
  /** Tokens that requests wait for. */
  readonly need: number
  /** `need`, and tokens to keep in stock, of which fewer are granted while few are left. Negative ones are given back. */
  readonly want: number
  /** Window of the tokens that are given back; ignored otherwise. */
  readonly window: number
}

/** Granted tokens are valid in their window only. */
export interface Grant {
  readonly granted: number
  /** Tokens left for every gateway. */
  readonly left: number
  /** Number of the window. */
  readonly window: number
  /** Until the window ends, by the engine's clock when it granted; milliseconds, rounded down. */
  readonly endsInMs: number
}

/** A change of a number that gateways share. */
export interface CounterChange {
  /** The same on every gateway. */
  readonly counter: string
  /** Whole number; 0 reads the counter. */
  readonly add: number
  /** How long the counter is kept after the change, milliseconds. */
  readonly keepMs: number
}

/** The global limit of `/ha/rate-limit`. */
export interface GlobalRate {
  /** Requests per second over all gateways; 0 for no limit, null if it was never set. */
  readonly limitPerSecond: number | null
  /** Requests admitted by all gateways in the current second of the engine, and tokens that other gateways hold. */
  readonly count: number
}

/** Enforces the global limit. */
export interface GlobalRateLimiter {
  read(): Promise<GlobalRate>
  /** @throws mesh_unavailable (503) */
  set(perSecond: number): Promise<void>
}

/** What gateways share, by the setting `shares`. */
export type SharedConcern = 'workers' | 'limits' | 'prefixes' | 'sessions' | 'wasm' | 'tokenizers' | 'keys'

export interface MeshService {
  readonly name: string
  /** False without an engine: this gateway is the only member. */
  readonly isShared: boolean
  /** True if there is an engine and the operator shares the concern. */
  shares(concern: SharedConcern): boolean
  /** Sorted by name; includes this gateway and, for a minute, those that are down. */
  readonly members: readonly MeshMember[]
  /** Called after each change of the members or of their status. */
  onMembers(listener: (members: readonly MeshMember[]) => void): void
  /** Null while everything works; else a problem, such as `mesh engine unreachable`. */
  problem(): string | null
  /**
   * Asks the engine whether changes are accepted now, for a change that is written later.
   * @throws mesh_unavailable (503), mesh_diverged (503)
   */
  checkChangeable(): Promise<void>
  /** Parts into which a shared limit is divided while the engine is unreachable; 1 gives this gateway the full limit. */
  readonly limitShares: number
  /**
   * Call in `register`.
   * @param kind letters, digits and dashes
   * @param isValid false for a value that must not be used, since everyone with access to the engine can write records: it counts as
   *   absent and can be written anew. Without it the caller checks values itself
   */
  records<T>(kind: string, isValid?: (value: unknown, id: string) => boolean): SharedRecords<T>
  /** Call in `register`. @param name letters, digits and dashes */
  channel(name: string): MeshChannel
  /**
   * Asks for tokens of shared limits in one step.
   * @returns in order of the requests
   * @throws mesh_unavailable (503)
   */
  grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]>
  /**
   * Adds to counters in one step, once per sequence number, so that a change of unknown outcome can be repeated.
   * @param writer unique; its sequence numbers grow
   * @returns totals in order of the changes
   * @throws mesh_unavailable (503)
   */
  addToCounters(
    writer: string,
    sequence: number,
    changes: readonly CounterChange[],
  ): Promise<readonly number[]>
  /** Connects the routes of the global limit; without a limiter they answer 503. Call in `register`. */
  limitGlobalRate(limiter: GlobalRateLimiter): void
  /** Encrypts a secret for a record. @param context what it belongs to; it opens with the same context only */
  seal(secret: string, context: string): string
  /** @throws mesh_secret_mismatch if it was sealed with another secret or context */
  open(sealed: string, context: string): string
  /** Stores up to 16 MiB; safe to repeat. Kept in memory too, for `weir mesh restore`, until it is removed. @returns SHA-256, 64 hex digits. @throws mesh_unavailable (503) */
  putBlob(bytes: Buffer): Promise<string>
  /** Null if the mesh does not have it. Kept in memory as above. @throws mesh_unavailable (503), mesh_blob_damaged */
  readBlob(sha256: string): Promise<Buffer | null>
  /** Removes a blob that no record refers to any more. */
  removeBlob(sha256: string): Promise<void>
}

export const Mesh = token<MeshService>('mesh')
