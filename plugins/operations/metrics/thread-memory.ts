/** Memory of one thread by kind, so that growth of the resident memory can be attributed. */
import type { GaugeHandle, Metrics } from '#kernel'

/** Label value by member of `process.memoryUsage()`; in a thread these cover the isolate of the thread only. */
const KINDS = [
  ['heapUsed', 'heap_used'],
  ['heapTotal', 'heap_total'],
  ['external', 'external'],
  ['arrayBuffers', 'array_buffers'],
] as const

/**
 * Declares `weir_thread_memory_bytes{thread, kind}`, read at each scrape.
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
