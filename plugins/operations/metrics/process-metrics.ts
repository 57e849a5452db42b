/** Metrics of the process, and of event loop and memory of each thread, read at each scrape. */
import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type GaugeHandle, type Metrics, readVersion } from '#kernel'

/**
 * Sampling interval of the event loop, in milliseconds. Each sample wakes an idle thread, which costs about 0.1 ms of CPU.
 */
const SAMPLE_INTERVAL_MS = 100

const QUANTILES = [0.5, 0.99, 1]

/**
 * Declares the event loop delay of this thread, `weir_event_loop_delay_seconds{thread, share}`, since the last scrape.
 *
 * @param thread 0 for control, 1-based for data threads
 * @returns stops the sampling
 */
export function declareEventLoopMetrics(metrics: Metrics, thread: number): () => void {
  const family = metrics.gauge({
    name: 'weir_event_loop_delay_seconds',
    help: 'Event loop delay since the last scrape: the given share of samples was at most this late; share 1 is the maximum.',
    // Not named `quantile`, which is reserved for summaries.
    labels: ['thread', 'share'],
  })
  const busy = metrics
    .gauge({
      name: 'weir_event_loop_busy_ratio',
      help: 'Share of time in which the event loop was busy since the last scrape.',
      labels: ['thread'],
    })
    .labels(String(thread))
  const watch = monitorEventLoopDelay({ resolution: SAMPLE_INTERVAL_MS })
  watch.enable()
  let before = performance.eventLoopUtilization()
  metrics.onCollect(() => {
    for (const quantile of QUANTILES) {
      const intervalMs = watch.count === 0 ? 0 : watch.percentile(quantile * 100) / 1e6
      // The monitor records the whole interval between two samples, including the sampling interval.
      const delayMs = Math.max(0, intervalMs - SAMPLE_INTERVAL_MS)
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

/** Label value by member of `process.memoryUsage()`; in a thread these cover the isolate of the thread only. */
const KINDS = [
  ['heapUsed', 'heap_used'],
  ['heapTotal', 'heap_total'],
  ['external', 'external'],
  ['arrayBuffers', 'array_buffers'],
] as const

/**
 * Declares `weir_thread_memory_bytes{thread, kind}`, so that growth of the resident memory can be attributed.
 *
 * @param thread 0 for control, 1-based for data threads
 */
export function declareThreadMemory(metrics: Metrics, thread: number): void {
  const family = metrics.gauge({
    name: 'weir_thread_memory_bytes',
    help: 'Memory of a thread: heap_used and heap_total of V8, external memory of its objects, and array_buffers. Buffers that threads share count on thread 0.',
    labels: ['thread', 'kind'],
  })
  const gauges = KINDS.map(([member, kind]): [typeof member, GaugeHandle] => [
    member,
    family.labels(String(thread), kind),
  ])
  metrics.onCollect(() => {
    const usage = memoryUsage()
    if (usage !== null) for (const [member, gauge] of gauges) gauge.value = usage[member]
  })
}

/** Null without a free file descriptor, which the resident memory of the process needs. */
function memoryUsage(): NodeJS.MemoryUsage | null {
  try {
    return process.memoryUsage()
  } catch {
    return null
  }
}

/** Open file descriptors and their limit; if they cannot be counted, the limit for both. */
function readDescriptors(): [open: number, limit: number] {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const limit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? 0)
    lastDescriptors = [readdirSync('/proc/self/fd').length, limit]
  } catch {
    // Not Linux, or no descriptor is left.
    lastDescriptors = [lastDescriptors[1], lastDescriptors[1]]
  }
  return lastDescriptors
}
let lastDescriptors: [number, number] = [0, 0]

/** Reading needs a file descriptor; without one, the last value is kept. */
function residentBytes(last: number): number {
  try {
    return process.memoryUsage.rss()
  } catch {
    return last
  }
}

/** Declares version, memory, descriptors, CPU time and uptime of the process. Call on control only. */
export function declareProcessMetrics(metrics: Metrics): void {
  metrics
    .gauge({
      name: 'weir_build_info',
      help: '1, with the version of the gateway and of Node.',
      labels: ['version', 'node_version'],
    })
    .labels(readVersion(), process.versions.node).value = 1
  const gauge = (name: string, help: string) => metrics.gauge({ name, help }).labels()
  const resident = gauge('weir_process_resident_memory_bytes', 'Resident memory of the process.')
  const descriptors = gauge('weir_process_open_fds', 'Open file descriptors.')
  const limit = gauge('weir_process_max_fds', 'Maximum number of open file descriptors (ulimit -n).')
  const uptime = gauge('weir_process_uptime_seconds', 'Time since the process started.')
  const cpu = metrics
    .counter({
      name: 'weir_process_cpu_seconds_total',
      help: 'User and system CPU time of the process.',
    })
    .labels()
  metrics.onCollect(() => {
    const { user, system } = process.cpuUsage()
    resident.value = residentBytes(resident.value)
    cpu.value = (user + system) / 1e6
    uptime.value = process.uptime()
    ;[descriptors.value, limit.value] = readDescriptors()
  })
}
