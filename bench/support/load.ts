/** Runs load clients against subjects, round by round, and reads the CPU time that the subjects use meanwhile. */
import type { RunOptions } from './figure.ts'
import { startScript, treeCpuMicros } from './process.ts'
import { SSE_CHUNKS } from './sse-workload.ts'
import type { Subject } from './subject.ts'

/** A load client above this share of a core measures itself. */
const CLIENT_LIMIT = 0.95
/** A cold gateway uses several times the CPU per request. */
const WARM_UP = { requests: 10_000, runs: 5, seconds: 4 }

export interface LoadResult {
  /** Figures of the load client. */
  readonly report: Readonly<Record<string, number>>
  /** CPU time of the subject and its child processes during the load, all threads, in microseconds. */
  readonly cpuMicros: number
}

/** Results of a variant by its name, one per round; empty for a variant that was not measured. */
export type RoundResults<T = LoadResult> = (name: string) => readonly T[]

/** @param onStart gets the id of the load client's process @throws if a request failed */
export async function runLoad(
  file: string,
  subject: Subject,
  options: Readonly<Record<string, number>>,
  onStart?: (pid: number) => void,
): Promise<LoadResult> {
  const before = treeCpuMicros(subject.pid)
  const child = startScript(file, { port: subject.port, ...options })
  onStart?.(child.pid)
  const report = (await child.report()) as Record<string, number>
  const used = treeCpuMicros(subject.pid) - before
  await child.stop()
  if (report.failures > 0)
    throw new Error(`${subject.name}: ${report.failures} requests failed under ${file}`)
  return { report, cpuMicros: used }
}

/** Measures every variant once per round, in an order that rotates so that none is always the first. */
export async function measureRounds<Variant extends { readonly name: string }, T>(
  variants: readonly Variant[],
  { rounds, progress }: Pick<RunOptions, 'rounds' | 'progress'>,
  measure: (variant: Variant) => Promise<T>,
  title = '',
): Promise<RoundResults<T>> {
  const results = new Map<string, T[]>(variants.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (let index = 0; index < variants.length; index++) {
      const variant = variants[(index + round) % variants.length]
      progress(`${title}round ${round + 1}/${rounds}: ${variant.name}`)
      results.get(variant.name)?.push(await measure(variant))
    }
  }
  return (name) => results.get(name) ?? []
}

/** Sends load until this kind of request is compiled, for at most 20 s. */
export async function warmUp(load: (seconds: number) => Promise<LoadResult>): Promise<void> {
  let requests = 0
  for (let run = 0; run < WARM_UP.runs && requests < WARM_UP.requests; run++)
    requests += (await load(WARM_UP.seconds)).report.requests
}

/** Returns why figures that depend on throughput are withheld, or undefined if they are valid. */
export function clientBottleneck(results: readonly LoadResult[]): string | undefined {
  const highest = Math.max(...results.map((result) => result.report.clientCore))
  if (highest <= CLIENT_LIMIT) return undefined
  return `the load client was the bottleneck (${Math.round(highest * 100)} % of a core), so this would measure the client`
}

/** Microseconds per request or stream, a value per round. */
export function cpuPerRequest(results: readonly LoadResult[]): number[] {
  return results.map(({ cpuMicros, report }) => cpuMicros / (report.requests ?? report.streams))
}

/** Microseconds, a value per round. */
export function cpuPerChunk(results: readonly LoadResult[]): number[] {
  return results.map(({ cpuMicros, report }) => cpuMicros / (report.streams * SSE_CHUNKS))
}

/** Latency above that of the base in the same round, in milliseconds. @param key member of the reports, in microseconds */
export function addedMs(results: readonly LoadResult[], base: readonly LoadResult[], key: string): number[] {
  return results.map(({ report }, round) => (report[key] - base[round].report[key]) / 1_000)
}
