/**
 * Loaded into every thread of a gateway before its code (`--import`): appends the memory and the collections of the thread
 * to the file of `RUNTIME_REPORT`, a line of JSON every `RUNTIME_REPORT_MS` milliseconds.
 */
import { appendFileSync } from 'node:fs'
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import { threadId } from 'node:worker_threads'
import type { ThreadReport } from './runtime-reports.ts'

const file = process.env.RUNTIME_REPORT ?? '/dev/null'
let pausesMs: number[] = []

new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) pausesMs.push(duration)
}).observe({ entryTypes: ['gc'] })

setInterval(() => {
  const { external, arrayBuffers, rss } = process.memoryUsage()
  const spaces = getHeapSpaceStatistics().map(
    ({ space_name, space_used_size, physical_space_size }) =>
      [space_name, space_used_size, physical_space_size] as const,
  )
  const report: ThreadReport = { thread: threadId, rss, external, arrayBuffers, spaces, pausesMs }
  pausesMs = []
  appendFileSync(file, `${JSON.stringify(report)}\n`)
}, Number(process.env.RUNTIME_REPORT_MS)).unref()
