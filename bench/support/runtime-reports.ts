/** Reads what the threads of a gateway report about their memory and collections. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from './process.ts'

export interface ThreadReport {
  /** 0 for control. */
  readonly thread: number
  /** Resident memory of the process, in bytes. */
  readonly rss: number
  /** In bytes. */
  readonly external: number
  /** In bytes; shared ones count in several threads, and pages that were never written are not resident. */
  readonly arrayBuffers: number
  /** Name, used and resident bytes of each space of the heap. */
  readonly spaces: readonly (readonly [name: string, used: number, physical: number])[]
  /** Collections since the last report, in milliseconds. */
  readonly pausesMs: readonly number[]
}

export interface RuntimeReports {
  /** Options of Node. */
  readonly nodeOptions: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** All reports since the last call. */
  take(): ThreadReport[]
}

/** @param intervalMs of the reports of each thread */
export function openRuntimeReports(intervalMs: number): RuntimeReports {
  const file = join(temporaryDirectory(), 'reports')
  writeFileSync(file, '')
  let taken = 0
  return {
    nodeOptions: ['--import', fileURLToPath(new URL('runtime-report.ts', import.meta.url))],
    env: { RUNTIME_REPORT: file, RUNTIME_REPORT_MS: String(intervalMs) },
    take() {
      const lines = readFileSync(file, 'utf8').split('\n').slice(taken, -1)
      taken += lines.length
      return lines.map((line) => JSON.parse(line))
    },
  }
}
