/** Prometheus series of modules, by name, attach point and outcome. */
import type { CounterHandle, HistogramHandle, Metrics } from '#kernel'
import { ATTACH_POINTS, type AttachPoint, FETCH_ERRORS } from '../../../wasm-sdk/abi.ts'
import { MAX_METRIC_SERIES } from '../instances/host-functions.ts'
import type { CallReport, LoadedModule } from '../threads/guest-task.ts'
import type { GaugeReports } from './module-gauges.ts'

const OUTCOMES = [
  'continue',
  'modify',
  'reject',
  'fetch',
  'pick',
  'error',
  'bad_output',
  'fuel',
  'timeout',
  'crashed',
] as const
const SKIP_REASONS = ['suspended', 'saturated', 'reply_too_large', 'unreadable_stream'] as const

const FETCH_OUTCOMES = ['answered', ...FETCH_ERRORS] as const

export type Outcome = (typeof OUTCOMES)[number]
export type SkipReason = (typeof SKIP_REASONS)[number]

type Noted = Pick<CallReport, 'counted' | 'observed' | 'gauged'>

interface ModuleSeries {
  readonly module: LoadedModule
  readonly fuel: CounterHandle
  readonly points: Map<AttachPoint, { duration: HistogramHandle; outcomes: Map<Outcome, CounterHandle> }>
}

function openSeries(metrics: Metrics) {
  /** @param labels after that of the module */
  const counter = (name: string, help: string, ...labels: string[]) =>
    metrics.counter({ name, help, labels: ['module', ...labels] })
  return {
    executions: counter('weir_wasm_executions_total', 'Calls of WASM modules.', 'attach_point', 'outcome'),
    durations: metrics.histogram({
      name: 'weir_wasm_execution_duration_seconds',
      help: 'Time in a guest, instantiation included.',
      labels: ['module', 'attach_point'],
      buckets: [0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    }),
    skipped: counter('weir_wasm_skipped_total', 'Skipped calls of WASM modules.', 'reason'),
    droppedHeaders: counter('weir_wasm_dropped_headers_total', 'Rejected header changes of WASM modules.'),
    fuel: counter('weir_wasm_fuel_total', 'Fuel used by calls of WASM modules.'),
    droppedLines: counter(
      'weir_wasm_dropped_log_lines_total',
      'Log lines of WASM modules and their failures that exceeded the rate limit.',
    ),
    fetches: counter('weir_wasm_fetches_total', 'Outgoing requests of WASM modules by outcome.', 'outcome'),
    counted: counter('weir_wasm_module_events_total', 'Counters of WASM modules.', 'name', 'label'),
    observed: metrics.histogram({
      name: 'weir_wasm_module_values',
      help: 'Histograms of WASM modules, in units of the module.',
      labels: ['module', 'name', 'label'],
      buckets: [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6],
    }),
  }
}

export class ModuleMetrics {
  readonly #all: ReturnType<typeof openSeries>
  readonly #gauges: Pick<GaugeReports, 'set'>
  /** By row of the registered module. */
  readonly #series: (ModuleSeries | undefined)[] = []
  /** Series of guests by module name: name and label. */
  readonly #noted = new Map<string, Map<string, readonly [name: string, label: string]>>()

  constructor(metrics: Metrics, gauges: Pick<GaugeReports, 'set'>) {
    this.#all = openSeries(metrics)
    this.#gauges = gauges
  }

  executed(
    module: LoadedModule,
    point: AttachPoint,
    outcome: Outcome,
    durationUs: number,
    fuel: number,
  ): void {
    let series = this.#series[module.row]
    if (series?.module !== module) {
      series = { module, fuel: this.#all.fuel.labels(module.name), points: new Map() }
      this.#series[module.row] = series
    }
    let ofPoint = series.points.get(point)
    if (ofPoint === undefined) {
      ofPoint = { duration: this.#all.durations.labels(module.name, point), outcomes: new Map() }
      series.points.set(point, ofPoint)
    }
    let executions = ofPoint.outcomes.get(outcome)
    if (executions === undefined) {
      executions = this.#all.executions.labels(module.name, point, outcome)
      ofPoint.outcomes.set(outcome, executions)
    }
    executions.inc()
    ofPoint.duration.observe(durationUs / 1e6)
    series.fuel.inc(fuel)
  }

  skipped({ name }: LoadedModule, reason: SkipReason): void {
    this.#all.skipped.labels(name, reason).inc()
  }

  droppedHeaders({ name }: LoadedModule, count: number): void {
    if (count > 0) this.#all.droppedHeaders.labels(name).inc(count)
  }

  /** Adds the counts and observations of a call, and sets its gauges. */
  noted({ name }: LoadedModule, { counted, observed, gauged }: Noted): void {
    for (let i = 0; i < gauged.length; i += 2) {
      const labels = this.#labels(name, String(gauged[i]))
      if (labels !== null)
        this.#gauges.set({ module: name, name: labels[0], label: labels[1], value: Number(gauged[i + 1]) })
    }
    for (let i = 0; i < counted.length; i += 2) {
      const labels = this.#labels(name, String(counted[i]))
      if (labels !== null) this.#all.counted.labels(name, ...labels).inc(Number(counted[i + 1]))
    }
    for (let i = 0; i < observed.length; i += 2) {
      const labels = this.#labels(name, String(observed[i]))
      if (labels !== null) this.#all.observed.labels(name, ...labels).observe(Number(observed[i + 1]))
    }
  }

  /** Null for a new series of a module with too many. Guest threads apply the limit too, but each starts from zero. */
  #labels(module: string, series: string): readonly [name: string, label: string] | null {
    const all = this.#noted.get(module) ?? new Map<string, readonly [string, string]>()
    this.#noted.set(module, all)
    const known = all.get(series)
    if (known !== undefined) return known
    if (all.size >= MAX_METRIC_SERIES) return null
    const at = series.indexOf('{')
    const labels =
      at < 0 ? ([series, ''] as const) : ([series.slice(0, at), series.slice(at + 1, -1)] as const)
    all.set(series, labels)
    return labels
  }

  droppedLines({ name }: LoadedModule, count: number): void {
    if (count > 0) this.#all.droppedLines.labels(name).inc(count)
  }

  fetched({ name }: LoadedModule, outcome: (typeof FETCH_OUTCOMES)[number]): void {
    this.#all.fetches.labels(name, outcome).inc()
  }

  /** Removes the series of a module name that is no longer registered. */
  forget(name: string): void {
    for (const point of ATTACH_POINTS) {
      this.#all.durations.remove(name, point)
      for (const outcome of OUTCOMES) this.#all.executions.remove(name, point, outcome)
    }
    for (const reason of SKIP_REASONS) this.#all.skipped.remove(name, reason)
    for (const outcome of FETCH_OUTCOMES) this.#all.fetches.remove(name, outcome)
    this.#all.droppedHeaders.remove(name)
    this.#all.fuel.remove(name)
    this.#all.droppedLines.remove(name)
    for (const labels of this.#noted.get(name)?.values() ?? []) {
      this.#all.counted.remove(name, ...labels)
      this.#all.observed.remove(name, ...labels)
    }
    this.#noted.delete(name)
  }
}
