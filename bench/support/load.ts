/** Runs one load client against one subject and adds what the subject's process used meanwhile. */
import { cpuMicros, startScript } from './process.ts'
import type { Subject } from './subject.ts'

/** A load client that used more of a core than this measured itself. */
const CLIENT_LIMIT = 0.95

export interface LoadResult {
  /** What the client reported. */
  readonly report: Readonly<Record<string, number>>
  /** CPU time of the subject during the load, all threads, in microseconds. */
  readonly cpuMicros: number
}

export async function runLoad(
  file: string,
  subject: Subject,
  options: Readonly<Record<string, number>>,
): Promise<LoadResult> {
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
  const before = cpuMicros(subject.pid)
  const child = startScript(new URL(file, import.meta.url), ['--port', String(subject.port), ...args])
  const report = (await child.report()) as Record<string, number>
  const used = cpuMicros(subject.pid) - before
  await child.stop()
  if (report.failures > 0)
    throw new Error(`${subject.name}: ${report.failures} requests failed under ${file}`)
  return { report, cpuMicros: used }
}

/** Why figures that depend on throughput may not be reported, or undefined when they may. */
export function clientBottleneck(results: readonly LoadResult[]): string | undefined {
  const highest = Math.max(...results.map((result) => result.report.clientCore))
  if (highest <= CLIENT_LIMIT) return undefined
  return `the load client was the bottleneck (${Math.round(highest * 100)} % of a core), so this would measure the client`
}

/** Subjects in an order that moves by one place each round, so that none always runs first. */
export function rotate<T>(subjects: readonly T[], round: number): T[] {
  return subjects.map((_, index) => subjects[(index + round) % subjects.length])
}
