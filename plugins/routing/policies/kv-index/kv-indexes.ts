/** Block indexes of one thread by model; written by `kv-event-monitor.ts`, read by cache_aware. */
import type { WorkerEntry } from '#kernel'
import { runSliced } from '../sliced-sweep.ts'
import { KvBlockIndex } from './kv-block-index.ts'

/** Model of workers that list none. */
const UNKNOWN_MODEL = 'unknown'

export class KvIndexes {
  private readonly byModel = new Map<string, KvBlockIndex>()

  /** The index of a model; null if no engine has reported a block. */
  find(model: string): KvBlockIndex | null {
    const index = this.byModel.get(model)
    return index === undefined || index.size === 0 ? null : index
  }

  /** The index of the worker's model, created if missing. Uses the first model name, because an engine runs one model. */
  of(worker: WorkerEntry): KvBlockIndex {
    const model = worker.models[0]?.id ?? UNKNOWN_MODEL
    let index = this.byModel.get(model)
    if (index === undefined) {
      index = new KvBlockIndex(runSliced)
      this.byModel.set(model, index)
    }
    return index
  }

  /** Deletes the indexes of models that no worker has. */
  keep(workers: readonly WorkerEntry[]): void {
    const served = new Set(workers.map((worker) => worker.models[0]?.id ?? UNKNOWN_MODEL))
    for (const model of this.byModel.keys()) if (!served.has(model)) this.byModel.delete(model)
  }
}
