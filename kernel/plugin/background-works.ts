/** Background work of one thread: drain waits for it and cancels it at the end of the grace period. */
import type { BackgroundWork } from '../contracts/detached.ts'
import type { Logger } from '../contracts/log.ts'
import type { GaugeHandle, Metrics } from '../contracts/metric.ts'

export class BackgroundWorks {
  readonly #log: Logger
  readonly #metrics: Metrics
  readonly #open = new Map<BackgroundWork, string>()
  /** By plugin. */
  readonly #active = new Map<string, GaugeHandle>()
  #whenIdle: (() => void)[] = []

  constructor(metrics: Metrics, log: Logger) {
    this.#metrics = metrics
    this.#log = log
  }

  get size(): number {
    return this.#open.size
  }

  add(plugin: string, given: Promise<unknown> | BackgroundWork): void {
    // A new object for each call, because the same promise may be added twice.
    const work: BackgroundWork = given instanceof Promise ? { done: given } : given
    if (this.#open.has(work)) return
    this.#open.set(work, plugin)
    const active = this.#active.get(plugin) ?? this.#gaugeOf(plugin)
    active.value += 1
    const end = () => {
      active.value -= 1
      this.#open.delete(work)
      if (this.#open.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
    }
    work.done.then(end, (err: unknown) => {
      this.#failed(plugin, err)
      end()
    })
  }

  #gaugeOf(plugin: string): GaugeHandle {
    const gauge = this.#metrics
      .gauge({ name: 'weir_background_work_active', help: 'Active background work.', labels: ['plugin'] })
      .labels(plugin)
    this.#active.set(plugin, gauge)
    return gauge
  }

  /** Resolves when no work is active. */
  whenIdle(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** Cancels all active work. @returns its number */
  cancel(): number {
    const left = [...this.#open]
    for (const [work, plugin] of left) {
      try {
        work.cancel?.()
      } catch (err) {
        this.#failed(plugin, err)
      }
    }
    return left.length
  }

  #failed(plugin: string, err: unknown): void {
    this.#log.error({ err, plugin }, 'background work failed')
    this.#metrics
      .counter({
        name: 'weir_background_work_failed_total',
        help: 'Background work that ended with an error.',
        labels: ['plugin'],
      })
      .labels(plugin)
      .inc()
  }
}
