/**
 * Gauges of modules. A gauge has one value for all threads, the last one that a thread reported: control holds it, since
 * values of several threads would be added at a scrape.
 */
import { defineCommand, type Host, type Metrics } from '#kernel'
import { MAX_METRIC_SERIES } from '../instances/host-functions.ts'

/** Between reports of a thread, milliseconds. */
const REPORT_MS = 250

interface GaugeValue {
  readonly module: string
  readonly name: string
  readonly label: string
  readonly value: number
}

export const SetGauges = defineCommand<readonly GaugeValue[], void>('wasm.set-gauges')

/** Collects the values that modules set on a data thread, and reports the last ones to control. */
export class GaugeReports {
  readonly #host: Pick<Host, 'command' | 'log'>
  readonly #values = new Map<string, GaugeValue>()
  #timer: NodeJS.Timeout | null = null

  constructor(host: Pick<Host, 'command' | 'log'>) {
    this.#host = host
  }

  set(value: GaugeValue): void {
    this.#values.set(JSON.stringify([value.module, value.name, value.label]), value)
    this.#timer ??= setTimeout(() => this.#report(), REPORT_MS).unref()
  }

  #report(): void {
    this.#timer = null
    const values = [...this.#values.values()]
    this.#values.clear()
    this.#host
      .command(SetGauges, values)
      .catch((err: unknown) => this.#host.log.warn({ err }, 'gauges of wasm modules lost'))
  }
}

/** The gauges of all modules, on control. */
export class ModuleGauges {
  readonly #family
  /** Names and labels by module. */
  readonly #known = new Map<string, Map<string, readonly [name: string, label: string]>>()

  constructor(metrics: Metrics) {
    this.#family = metrics.gauge({
      name: 'weir_wasm_module_gauge',
      help: 'Gauges of WASM modules: the last value that any thread set.',
      labels: ['module', 'name', 'label'],
    })
  }

  /** Ignores new series of a module with too many: each thread has other ones. */
  set(values: readonly GaugeValue[]): void {
    for (const { module, name, label, value } of values) {
      const known = this.#known.get(module) ?? new Map()
      this.#known.set(module, known)
      const series = `${name}{${label}}`
      if (known.size >= MAX_METRIC_SERIES && !known.has(series)) continue
      known.set(series, [name, label])
      this.#family.labels(module, name, label).value = value
    }
  }

  /** Removes the gauges of other modules. */
  retain(modules: ReadonlySet<string>): void {
    for (const [module, known] of this.#known) {
      if (modules.has(module)) continue
      for (const [name, label] of known.values()) this.#family.remove(module, name, label)
      this.#known.delete(module)
    }
  }
}
