/** Asks workers for their metrics, some at a time; those that fail, speak gibberish or say too much are left out. */

import type { WorkerControl, WorkerControls, WorkerEntry } from '#kernel'
import { readPrometheusText, trimSlashes } from '#shared'
import { inTurns } from './in-turns.ts'
import { hasTooManyLabels, type WorkerFamilies } from './merge-metrics.ts'

export interface ScrapeOptions {
  /** For each worker, in milliseconds. */
  readonly timeoutMs: number
  readonly maxConcurrent: number
}

export interface ScrapeTarget {
  /** Of the engine. */
  readonly url: string
  readonly worker: WorkerEntry
  readonly control: Pick<WorkerControl, 'metricsText'>
}

/** One target per engine that may have metrics, whatever its state, in order of registration. */
export function scrapeTargets(
  controls: Pick<WorkerControls, 'controlOf'>,
  workers: readonly WorkerEntry[],
): ScrapeTarget[] {
  const targets = new Map<string, ScrapeTarget>()
  for (const worker of workers) {
    const url = trimSlashes(worker.dataParallel?.baseUrl ?? worker.url)
    const control = controls.controlOf(worker.connectionMode)
    if (control?.metricsText !== undefined && !targets.has(url)) targets.set(url, { url, worker, control })
  }
  return [...targets.values()]
}

/** @returns what could be read, in the order of the targets */
export async function scrapeWorkers(
  targets: readonly ScrapeTarget[],
  options: ScrapeOptions,
): Promise<WorkerFamilies[]> {
  const results: (WorkerFamilies | null)[] = new Array(targets.length).fill(null)
  let next = 0
  const takeTurns = async () => {
    while (next < targets.length) {
      const index = next++
      results[index] = await scrapeOne(targets[index], options.timeoutMs)
    }
  }
  await Promise.all(Array.from({ length: Math.min(options.maxConcurrent, targets.length) }, takeTurns))
  return results.filter((result) => result !== null)
}

async function scrapeOne(
  { url, worker, control }: ScrapeTarget,
  timeoutMs: number,
): Promise<WorkerFamilies | null> {
  try {
    const text = await control.metricsText?.(worker, timeoutMs)
    const families = await inTurns(readPrometheusText(text ?? ''))
    return families.length === 0 || (await inTurns(hasTooManyLabels(families))) ? null : { url, families }
  } catch {
    // One broken worker must not hide the metrics of the others.
    return null
  }
}
