/** Notices that the engine at a worker's URL now serves other models, or with another context length, after a successful probe. */
import type { WorkerControl } from '#kernel'
import type { Worker } from './worker.ts'

export class EngineChanges {
  readonly #onChange: (worker: Worker) => void
  /** What the engine listed first, by revision: a worker that was described again is a new object. */
  readonly #listed = new WeakMap<Worker, string>()

  /** @param onChange describes the worker again; called after each probe until a new revision of the worker is probed */
  constructor(onChange: (worker: Worker) => void) {
    this.#onChange = onChange
  }

  /** Never rejects. @param timeoutMs milliseconds */
  async check(worker: Worker, control: WorkerControl, timeoutMs: number): Promise<void> {
    if (worker.entry.isExternal) return
    const listed = (await control.modelList?.(worker.entry, timeoutMs)) ?? null
    if (listed === null) return
    const before = this.#listed.get(worker)
    if (before === undefined) this.#listed.set(worker, listed)
    else if (before !== listed) this.#onChange(worker)
  }
}
