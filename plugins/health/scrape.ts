/** Asks workers for their metrics, some at a time; those that fail or speak gibberish are left out. */
import { parsePrometheusText, trimSlashes, type Upstream, type WorkerEntry } from '#kernel'
import type { WorkerFamilies } from './merge-metrics.ts'

/** No engine has so many metrics; anybody may have them read. */
const MAX_PAGE_BYTES = 4_194_304

export interface ScrapeOptions {
  /** For each worker, in milliseconds. */
  readonly timeoutMs: number
  readonly maxConcurrent: number
}

export type ScrapeTarget = Pick<WorkerEntry, 'url' | 'apiKey'>

/** One target per base URL of an HTTP worker, whatever its state, in order of registration. */
export function scrapeTargets(workers: readonly WorkerEntry[]): ScrapeTarget[] {
  const targets = new Map<string, ScrapeTarget>()
  for (const { url, dataParallel, apiKey, connectionMode } of workers) {
    const baseUrl = trimSlashes(dataParallel?.baseUrl ?? url)
    if (connectionMode === 'http' && !targets.has(baseUrl)) targets.set(baseUrl, { url: baseUrl, apiKey })
  }
  return [...targets.values()]
}

/** @returns what could be read, in the order of the targets */
export async function scrapeWorkers(
  upstream: Upstream,
  targets: readonly ScrapeTarget[],
  options: ScrapeOptions,
): Promise<WorkerFamilies[]> {
  const results: (WorkerFamilies | null)[] = new Array(targets.length).fill(null)
  let next = 0
  const takeTurns = async () => {
    while (next < targets.length) {
      const index = next++
      results[index] = await scrapeOne(upstream, targets[index], options.timeoutMs)
    }
  }
  await Promise.all(Array.from({ length: Math.min(options.maxConcurrent, targets.length) }, takeTurns))
  return results.filter((result) => result !== null)
}

async function scrapeOne(
  upstream: Upstream,
  target: ScrapeTarget,
  timeoutMs: number,
): Promise<WorkerFamilies | null> {
  try {
    const reply = await upstream.call(target, {
      method: 'GET',
      path: '/metrics',
      headers: ['accept', 'text/plain;version=0.0.4'],
      timeoutMs,
      maxBodyBytes: MAX_PAGE_BYTES,
    })
    if (reply.status !== 200) return null
    const families = parsePrometheusText(reply.body.toString('utf8'))
    return families.length === 0 ? null : { url: target.url, families }
  } catch {
    // One broken worker must not hide the metrics of the others.
    return null
  }
}
