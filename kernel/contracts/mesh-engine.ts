/**
 * The engine contract: a data store with a clock that several gateways reach. Each operation is atomic, and fails with an
 * Error that says what happened if the engine does not answer in time. Control only.
 */
import type { CounterChange, Grant, GrantRequest } from './mesh.ts'
import { token } from './token.ts'

/** Limits of what a gateway reads from the engine, which other gateways and other programs write. */
export const MESH_INTAKE = Object.freeze({
  recordBytes: 4 * 1024 * 1024,
  /** Of all kinds together. */
  allRecords: 262_144,
  allBytes: 256 * 1024 * 1024,
  messageBytes: 64 * 1024,
  blobBytes: 16 * 1024 * 1024,
  /** Gateways; a mesh has some tens. */
  members: 1_000,
  /** What a gateway says about itself. */
  aboutBytes: 128 * 1024,
})

/** A gateway as the engine keeps it. */
export interface EngineNode {
  readonly name: string
  readonly incarnation: number
  /** JSON of what the gateway says about itself. */
  readonly about: string
  /** Since its last renewal, milliseconds by the engine's clock. */
  readonly ageMs: number
}

/** A change in the history of the data. The same revision of another epoch is another change. */
export interface EnginePosition {
  readonly epoch: string
  readonly revision: number
}

export interface EngineState {
  /** Of the last change. */
  readonly revision: number
  /**
   * History of the data: each epoch with the last revision that is of it, oldest first. A new one begins with the first
   * change after the primary was restarted or replaced, at which changes of the one before may have been lost.
   */
  readonly epochs: readonly EnginePosition[]
}

/** When a change is acknowledged: on the disk of the engine, in its memory, or in so many replicas. */
export type Acknowledge = 'disk' | 'memory' | { readonly replicas: number }

/** The engine cannot be reached now; the operation may be repeated later. */
export class EngineUnreachable extends Error {
  override readonly name = 'EngineUnreachable'
}

export interface Renewal extends EngineState {
  /** False if the name is no longer held under this incarnation. */
  readonly isHeld: boolean
  readonly nodes: readonly EngineNode[]
}

export interface EngineRecord {
  readonly kind: string
  readonly id: string
  readonly revision: number
  /** JSON; null for a removed record. */
  readonly value: string | null
}

/** Where a reader of the change log and of the channels stands. */
export interface Positions {
  readonly log: string
  /** The last change that was read. */
  readonly last: EnginePosition
  readonly channels: ReadonlyMap<string, string>
}

export interface ChannelMessage {
  readonly channel: string
  readonly message: Buffer
  readonly from: string
}

export interface Followed {
  readonly positions: Positions
  /** Changed records, newest values. */
  readonly changes: readonly EngineRecord[]
  readonly messages: readonly ChannelMessage[]
  /**
   * Changes are missing, since the log keeps only the newest ones, all records were replaced, or the changed records have
   * more bytes than `MESH_INTAKE` allows: read all records.
   */
  readonly isTrimmed: boolean
}

export interface MeshEngine {
  /** Such as `valkey`. */
  readonly kind: string
  /**
   * Opens connections; breaks are repaired in the background, also after EngineUnreachable.
   * @throws EngineUnreachable; Error if the engine rejects this gateway, or cannot acknowledge changes as configured
   */
  connect(acknowledge: Acknowledge): Promise<void>
  close(): Promise<void>
  /**
   * Takes a name whose last holder is gone: silent for `goneMs`, or left.
   * @returns the new incarnation; null while another gateway holds it
   */
  takeName(
    name: string,
    about: string,
    goneMs: number,
  ): Promise<({ incarnation: number } & EngineState) | null>
  /** Renews the name, unless it was silent for `goneMs`. Forgets nodes that were silent for `forgetMs`. */
  renew(name: string, incarnation: number, about: string, goneMs: number, forgetMs: number): Promise<Renewal>
  /** Gives up the name. */
  leave(name: string, incarnation: number): Promise<void>
  /**
   * All records, and the positions at that moment.
   * @throws Error if there are more than `MESH_INTAKE` allows
   */
  readAll(
    channels: readonly string[],
  ): Promise<{ readonly records: readonly EngineRecord[]; readonly positions: Positions } & EngineState>
  /**
   * Writes if the record has the expected revision; 0 for none.
   * @param value JSON; null removes it
   * @returns the acknowledged change, or the present record
   */
  write(change: {
    kind: string
    id: string
    expected: number
    value: string | null
  }): Promise<EnginePosition | { readonly conflict: EngineRecord }>
  /**
   * Replaces all records. Positions of all epochs that the gateway or the engine knows are in the history from then on.
   * @param epochs that the gateway knows
   * @param revision of the newest record
   */
  restore(records: readonly EngineRecord[], epochs: readonly string[], revision: number): Promise<void>
  /** Waits for something behind the positions, at most `waitMs`. */
  follow(positions: Positions, waitMs: number): Promise<Followed>
  /** Appends messages of this gateway to a channel, which keeps the newest ones. */
  send(
    from: string,
    messages: readonly { readonly channel: string; readonly message: Buffer }[],
  ): Promise<void>
  grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]>
  /** Adds to counters unless the writer's sequence number was seen before. @returns totals in order of the changes */
  addToCounters(
    writer: string,
    sequence: number,
    changes: readonly CounterChange[],
  ): Promise<readonly number[]>
  putBlob(sha256: string, bytes: Buffer): Promise<void>
  /** Null without it. @throws Error if it has more bytes than `MESH_INTAKE` allows */
  readBlob(sha256: string): Promise<Buffer | null>
  removeBlob(sha256: string): Promise<void>
  /** For metrics: commands and their time since the start. */
  readonly commands: { readonly count: number; readonly errors: number; readonly seconds: number }
}

/** Opens the engine of one mesh; engines of different meshes do not see each other. */
export type OpenMeshEngine = (mesh: string) => MeshEngine

export const MeshEngine = token<OpenMeshEngine>('mesh-engine')
