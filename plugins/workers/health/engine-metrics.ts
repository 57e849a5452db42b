/** GET /engine_metrics: scrapes all workers and merges their metrics. Concurrent requests share one scrape. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { WorkerControl, WorkerControls, WorkerEntry } from '#kernel'
import { engineUrl, fanOut, printPrometheusText, readPrometheusText, trimSlashes } from '#shared'
import { healthErrors } from './errors.ts'
import { hasTooManyLabels, mergeMetrics, type WorkerFamilies } from './merge-metrics.ts'

type Controls = Pick<WorkerControls, 'controlOf'>

export class EngineMetricsPage {
  readonly #options: ScrapeOptions
  #reading: Promise<string> | null = null

  constructor(options: ScrapeOptions) {
    this.#options = options
  }

  /** @throws no_engine_metrics (503) */
  read(controls: Controls, workers: readonly WorkerEntry[]): Promise<string> {
    this.#reading ??= this.#read(controls, workers).finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #read(controls: Controls, workers: readonly WorkerEntry[]): Promise<string> {
    const targets = scrapeTargets(controls, workers)
    const scraped = await scrapeWorkers(targets, this.#options)
    if (scraped.length === 0) throw healthErrors.no_engine_metrics(targets.length)
    return runInSlices(printPrometheusText(await runInSlices(mergeMetrics(scraped))))
  }
}

export interface ScrapeOptions {
  /** For each worker, milliseconds. */
  readonly timeoutMs: number
  readonly maxConcurrent: number
}

export interface ScrapeTarget {
  /** Of the engine. */
  readonly url: string
  readonly worker: WorkerEntry
  readonly control: Pick<WorkerControl, 'metricsText'>
}

/** One target per engine that may expose metrics, whatever its status, in order of registration. */
export function scrapeTargets(controls: Controls, workers: readonly WorkerEntry[]): ScrapeTarget[] {
  const targets = new Map<string, ScrapeTarget>()
  for (const worker of workers) {
    const url = trimSlashes(engineUrl(worker))
    const control = controls.controlOf(worker.connectionMode)
    if (control?.metricsText !== undefined && !targets.has(url)) targets.set(url, { url, worker, control })
  }
  return [...targets.values()]
}

/** @returns the metrics of workers that returned valid ones, in order of the targets */
export async function scrapeWorkers(
  targets: readonly ScrapeTarget[],
  options: ScrapeOptions,
): Promise<WorkerFamilies[]> {
  const { maxConcurrent, timeoutMs } = options
  const results = await fanOut(targets, maxConcurrent, (target) => scrapeOne(target, timeoutMs))
  return results.filter((result) => result !== null)
}

async function scrapeOne(
  { url, worker, control }: ScrapeTarget,
  timeoutMs: number,
): Promise<WorkerFamilies | null> {
  try {
    const text = await control.metricsText?.(worker, timeoutMs)
    const families = await runInSlices(readPrometheusText(text ?? ''))
    return families.length === 0 || (await runInSlices(hasTooManyLabels(families))) ? null : { url, families }
  } catch {
    // A broken worker must not hide the metrics of the others.
    return null
  }
}

/** Longest time that other work on the thread waits, plus one step. */
const SLICE_MS = 5

/** Runs long work in slices, so that the thread can serve requests in between. @param steps yields where it may be interrupted */
export async function runInSlices<T>(steps: Generator<void, T>): Promise<T> {
  let until = performance.now() + SLICE_MS
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (performance.now() < until) continue
    await nextTurn()
    until = performance.now() + SLICE_MS
  }
}
