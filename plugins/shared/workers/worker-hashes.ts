/** Identifies workers in messages between gateways, by their URLs: ids may differ from gateway to gateway. */
import { createHash } from 'node:crypto'
import type { WorkerEntry } from '#kernel'

const HASH_BYTES = 6

/** The hashes of the workers of a table. Hashes are kept while the entries are the same. */
export class WorkerHashes {
  #byEntry = new Map<WorkerEntry, number>()
  #byHash = new Map<number, WorkerEntry>()

  /** Call it after each change of the table. */
  follow(workers: readonly WorkerEntry[]): void {
    const known = this.#byEntry
    this.#byEntry = new Map(workers.map((worker) => [worker, known.get(worker) ?? workerHash(worker)]))
    this.#byHash = new Map(Array.from(this.#byEntry, ([worker, hash]) => [hash, worker]))
  }

  /** Undefined for a worker that is not in the table. */
  of(worker: WorkerEntry): number | undefined {
    return this.#byEntry.get(worker)
  }

  /** Undefined for a worker that this gateway does not have. */
  find(hash: number): WorkerEntry | undefined {
    return this.#byHash.get(hash)
  }
}

/** The hash of a worker's URL, 48 bits. */
function workerHash({ url }: WorkerEntry): number {
  return createHash('sha256').update(url).digest().readUIntLE(0, HASH_BYTES)
}
