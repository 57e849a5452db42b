/** Changes the specification of registered workers in the background, without describing their engines again. */
import { isDeepStrictEqual } from 'node:util'
import { SerialByKey } from '#shared'
import { BUDGET_MARGIN_MS, type ControlParts } from './control-parts.ts'
import { workerErrors } from './errors.ts'
import { respecifyWorker, type Worker } from './worker.ts'
import type { WorkerSpec } from './worker-spec.ts'
import { workerKey } from './worker-url.ts'

export class Updates {
  readonly #parts: ControlParts
  /** Each change of an engine starts from the result of the previous one. */
  readonly #changes = new SerialByKey()

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  /**
   * Changes all workers of an engine.
   * @param change of the specification at the time of the change
   * @param isExempt not subject to the queue limit: another gateway has accepted the change
   * @throws job_queue_full
   */
  begin({ id, spec }: Worker, change: (spec: WorkerSpec) => WorkerSpec, isExempt = false): void {
    const url = workerKey(spec.url)
    const options = { kind: 'UpdateWorker', url, budgetMs: BUDGET_MARGIN_MS, isExempt } as const
    this.#parts.jobs.submit(options, () => this.#changes.run(url, () => this.#apply(id, change)))
  }

  async #apply(id: string, change: (spec: WorkerSpec) => WorkerSpec): Promise<void> {
    const { registry, config, balance, checks, saved } = this.#parts
    const worker = registry.currentById(id)
    if (worker === undefined) throw workerErrors.worker_not_found(id)
    const spec = change(worker.spec)
    if (isDeepStrictEqual(spec, worker.spec)) return
    const engine = registry.engineOf(worker).map((member) => respecifyWorker(member, spec, config))
    // Saved first: a change that cannot be saved is not made.
    await saved.save(engine)
    if (registry.currentById(id) === undefined) return
    await registry.put(engine)
    const [first] = engine
    if (!registry.isCurrent(first)) return
    if (first.health.isDisabled) for (const { entry } of engine) balance.setStatus(entry.slot, 'ready')
    checks.watch(first)
  }
}
