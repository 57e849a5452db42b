/** The workers of the configuration: registers them at the start, and follows a reloaded configuration. */
import { isDeepStrictEqual } from 'node:util'
import type { WorkersConfig } from './config.ts'
import type { ControlParts } from './control-parts.ts'
import { workerErrors } from './errors.ts'
import type { WorkerManager } from './manager.ts'
import type { Registrations } from './registrations.ts'
import { toWorkerSpec, type WorkerSpec } from './worker-spec.ts'
import { workerKey } from './worker-url.ts'

/** The part of the configuration that lists workers. */
export type WorkerSettings = Pick<WorkersConfig, 'urls' | 'workers'>

export class ConfiguredWorkers {
  readonly #parts: ControlParts
  readonly #registrations: Registrations
  readonly #manager: Pick<WorkerManager, 'remove' | 'replace'>
  #current: ReadonlyMap<string, WorkerSpec>

  constructor(
    parts: ControlParts,
    registrations: Registrations,
    manager: Pick<WorkerManager, 'remove' | 'replace'>,
  ) {
    this.#parts = parts
    this.#registrations = registrations
    this.#manager = manager
    this.#current = specsByKey(parts.config)
  }

  /** Restores saved workers that are not configured, and starts to register the configured ones. */
  async start(): Promise<void> {
    const { saved, registry } = this.#parts
    const configured = this.#current
    const restored = (await saved.load()).filter(([{ spec }]) => !configured.has(workerKey(spec.url)))
    const engines = await Promise.all(
      restored.map((workers) => {
        const [{ spec, findings }] = workers
        return registry.add({ ids: workers.map(({ id }) => id), spec, findings, origin: 'api' })
      }),
    )
    registry.pending.setConfigured(configured.size)
    for (const [worker] of engines) this.#registrations.restore(worker)
    for (const spec of configured.values()) this.#registrations.begin(registry.reserve(spec, 'config'))
  }

  /**
   * What `reload` would do to registered workers.
   * @throws replace_unsupported as `reload` does
   */
  plan(settings: WorkerSettings): string[] {
    const { registry, balance, config } = this.#parts
    const [old, next] = [this.#current, specsByKey(settings)]
    const effects: string[] = []
    for (const [key, spec] of old) {
      const worker = registry.byUrl(spec.url)
      if (!next.has(key) && worker !== undefined) {
        const inFlight = registry
          .engineOf(worker)
          .reduce((sum, { entry }) => sum + balance.inFlight(entry.slot), 0)
        effects.push(`drains and removes worker ${worker.spec.url} (requests in flight: ${inFlight})`)
      } else if (next.has(key) && !isDeepStrictEqual(spec, next.get(key))) {
        if (config.dpAware) throw workerErrors.replace_unsupported()
        effects.push(`describes worker ${spec.url} again, which continues to serve`)
      }
    }
    for (const [key, { url }] of next) if (!old.has(key)) effects.push(`registers worker ${url}`)
    return effects
  }

  /**
   * Registers new workers, removes those no longer listed, and describes changed ones again while they continue to serve.
   * @throws replace_unsupported if dpAware is on and the specification of a worker changed
   */
  reload(settings: WorkerSettings): void {
    const { registry, config } = this.#parts
    const [old, next] = [this.#current, specsByKey(settings)]
    const changed = [...next].filter(([key, spec]) => old.has(key) && !isDeepStrictEqual(old.get(key), spec))
    if (config.dpAware && changed.length > 0) throw workerErrors.replace_unsupported()
    this.#registrations.trust(settings.workers)
    registry.pending.setConfigured(next.size)
    for (const [key, { url }] of old) {
      const known = registry.find(url)
      if (!next.has(key) && known !== undefined) this.#manager.remove(known.id)
    }
    for (const [, spec] of changed) {
      const known = registry.find(spec.url)
      if (known !== undefined) this.#manager.replace(known.id, { ...spec, url: known.spec.url })
    }
    for (const [key, spec] of next) {
      if (!old.has(key) && registry.byUrl(spec.url) === undefined)
        this.#registrations.begin(registry.reserve(spec, 'config'))
    }
    this.#current = next
  }
}

function specsByKey({ urls, workers }: WorkerSettings): Map<string, WorkerSpec> {
  const described = workers.map((wire) => {
    const spec = toWorkerSpec(wire)
    return { ...spec, configuredLabels: spec.labels }
  })
  const specs: WorkerSpec[] = [...urls.map((url) => toWorkerSpec({ url })), ...described]
  return new Map(specs.map((spec) => [workerKey(spec.url), spec]))
}
