/** The block indexes of one thread, by model. Filled by `kv-event-monitor.ts`, read by cache_aware. */
import type { WorkerEntry } from '#kernel'
import { runSliced } from '../time-slices.ts'
import { KvBlockIndex } from './kv-block-index.ts'

/** Tokens a block until an engine tells. */
const DEFAULT_BLOCK_SIZE = 16
/** Model of workers that name none. */
const UNKNOWN_MODEL = 'unknown'

export class KvIndexes {
  private readonly byModel = new Map<string, KvBlockIndex>()

  /** The index of a model; null when no engine has told of a block. */
  find(model: string): KvBlockIndex | null {
    const index = this.byModel.get(model)
    return index === undefined || index.size === 0 ? null : index
  }

  /** The index that a worker's events belong to, made if need be. An engine runs one model; its first name counts. */
  of(worker: WorkerEntry): KvBlockIndex {
    const model = worker.models[0]?.id ?? UNKNOWN_MODEL
    let index = this.byModel.get(model)
    if (index === undefined) {
      index = new KvBlockIndex(DEFAULT_BLOCK_SIZE, runSliced)
      this.byModel.set(model, index)
    }
    return index
  }

  /** Forgets the models that none of these workers has. */
  keep(workers: readonly WorkerEntry[]): void {
    const served = new Set(workers.map((worker) => worker.models[0]?.id ?? UNKNOWN_MODEL))
    for (const model of this.byModel.keys()) if (!served.has(model)) this.byModel.delete(model)
  }
}
