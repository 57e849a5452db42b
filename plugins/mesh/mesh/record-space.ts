/** Memory for the records of the mesh: what a gateway takes in, and what it adds at most. */
import { MESH_INTAKE } from '#kernel'
import { meshErrors } from './errors.ts'

const MIB = 1024 * 1024

/** Limits of each kind; about, since gateways add at the same time. Far below what a gateway takes in. */
export const KIND_LIMITS = { records: 65_536, bytes: 64 * MIB }
export type KindLimits = typeof KIND_LIMITS

/** Use of one kind. */
export class KindUse {
  readonly #total: IntakeUse
  records = 0
  bytes = 0
  /** Of changes that are being written. */
  #addedRecords = 0
  #addedBytes = 0

  constructor(total: IntakeUse) {
    this.#total = total
  }

  /** @param bytes size of a record that is added; negative for one that is removed */
  add(records: number, bytes: number): void {
    this.records += records
    this.bytes += bytes
    this.#total.records += records
    this.#total.bytes += bytes
  }

  /** Whether this gateway can take so much more. */
  fits(records: number, bytes: number): boolean {
    const { allRecords, allBytes } = MESH_INTAKE
    return this.#total.records + records <= allRecords && this.#total.bytes + bytes <= allBytes
  }

  /**
   * Holds room for a change until it was written.
   * @returns releases the room
   * @throws mesh_full (507)
   */
  hold(kind: string, records: number, bytes: number, limits: KindLimits): () => void {
    const allRecords = this.records + this.#addedRecords + records
    const allBytes = this.bytes + this.#addedBytes + bytes
    if (records > 0 && allRecords > limits.records)
      throw meshErrors.mesh_full(kind, `${limits.records} records`)
    if (bytes > 0 && allBytes > limits.bytes) throw meshErrors.mesh_full(kind, `${limits.bytes} bytes`)
    const [heldRecords, heldBytes] = [Math.max(0, records), Math.max(0, bytes)]
    this.#addedRecords += heldRecords
    this.#addedBytes += heldBytes
    return () => {
      this.#addedRecords -= heldRecords
      this.#addedBytes -= heldBytes
    }
  }
}

/** Use of all kinds together. */
export class IntakeUse {
  records = 0
  bytes = 0
}
