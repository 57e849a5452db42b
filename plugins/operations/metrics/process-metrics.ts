/** Metrics about the process and each thread's event loop, read when somebody scrapes. */

import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metrics } from '#kernel'

/**
 * How often the loop is watched. The timer is native, but it wakes a thread that sleeps: 0.1 ms of CPU each time, half a
 * percent of a core for each idle thread at 20 ms.
 */
const WATCH_MS = 100

const QUANTILES = [0.5, 0.99, 1]

/**
 * Declares how late this thread's event loop runs, as `weir_event_loop_delay_seconds{thread, share}`.
 * Each scrape shows the time since the scrape before it.
 *
 * @param thread 0 for control, 1-based for data threads; a label, since delays must not be added up
 * @returns stops the watching
 */
export function declareEventLoopMetrics(metrics: Metrics, thread: number): () => void {
  const family = metrics.gauge({
    name: 'weir_event_loop_delay_seconds',
    help: 'How late the event loop ran since the last scrape: the given share of looks was not later, and share 1 is the worst.',
    // Not `quantile`, which is for summaries.
    labels: ['thread', 'share'],
  })
  const busy = metrics
    .gauge({
      name: 'weir_event_loop_busy_ratio',
      help: 'Share of time the event loop was not idle since the last scrape.',
      labels: ['thread'],
    })
    .labels(String(thread))
  const watch = monitorEventLoopDelay({ resolution: WATCH_MS })
  watch.enable()
  let before = performance.eventLoopUtilization()
  metrics.onCollect(() => {
    for (const quantile of QUANTILES) {
      const intervalMs = watch.count === 0 ? 0 : watch.percentile(quantile * 100) / 1e6
      // The monitor records the whole interval between two looks, the intended one included.
      const delayMs = Math.max(0, intervalMs - WATCH_MS)
      family.labels(String(thread), String(quantile)).value = delayMs / 1000
    }
    watch.reset()
    const now = performance.eventLoopUtilization()
    busy.value = performance.eventLoopUtilization(now, before).utilization
    before = now
  })
  return () => {
    watch.disable()
  }
}

/** Open ones and their limit; where they cannot be counted, what was counted last says more than nothing. */
function readDescriptors(): [open: number, limit: number] {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const limit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 0)
    lastDescriptors = [readdirSync('/proc/self/fd').length, limit]
  } catch {
    // No such folder on this system, or no descriptor left to open it with.
    lastDescriptors = [lastDescriptors[1], lastDescriptors[1]]
  }
  return lastDescriptors
}
let lastDescriptors: [number, number] = [0, 0]

/** Needs a descriptor too; without one it is what it was. */
function residentBytes(last: number): number {
  try {
    return process.memoryUsage.rss()
  } catch {
    return last
  }
}

/** Declares memory, CPU time and uptime of the process. Call it on control only: they are shared by all threads. */
export function declareProcessMetrics(metrics: Metrics): void {
  const resident = metrics
    .gauge({ name: 'weir_process_resident_memory_bytes', help: 'Resident memory of the process.' })
    .labels()
  const descriptors = metrics
    .gauge({ name: 'weir_process_open_fds', help: 'Descriptors that are open: files, sockets, pipes.' })
    .labels()
  const limit = metrics
    .gauge({ name: 'weir_process_max_fds', help: 'Most descriptors that may be open (ulimit -n).' })
    .labels()
  const cpu = metrics
    .counter({
      name: 'weir_process_cpu_seconds_total',
      help: 'CPU time, user and system, of all threads.',
    })
    .labels()
  const uptime = metrics
    .gauge({ name: 'weir_process_uptime_seconds', help: 'Time since the process began.' })
    .labels()
  metrics.onCollect(() => {
    const { user, system } = process.cpuUsage()
    resident.value = residentBytes(resident.value)
    cpu.value = (user + system) / 1e6
    uptime.value = process.uptime()
    ;[descriptors.value, limit.value] = readDescriptors()
  })
}
