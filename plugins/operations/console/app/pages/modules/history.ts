/** Calls of modules over time, counted while the page is open. */
import { useEffect, useRef } from 'preact/hooks'
import type { Module, ModuleList } from './wire.ts'

/** Totals of one module at a time. */
interface Sample {
  readonly calls: number
  readonly failures: number
  readonly cpuMs: number
}

export interface Rates {
  /** Milliseconds since 1970. */
  readonly times: readonly number[]
  /** Null at times without calls. */
  readonly callsPerSecond: readonly (number | null)[]
  readonly failureShare: readonly (number | null)[]
  readonly meanMs: readonly (number | null)[]
}

const MAX_SAMPLES = 450

/** @returns rates of one module between the reads of the list */
export function useModuleRates(list: ModuleList | null): (module: Module) => Rates {
  const samples = useRef<{ readonly atMs: number; readonly of: ReadonlyMap<string, Sample> }[]>([])
  useEffect(() => {
    if (list === null) return
    const of = new Map(list.modules.map((module) => [module.module_uuid, sampleOf(module)]))
    samples.current = [...samples.current.slice(1 - MAX_SAMPLES), { atMs: Date.now(), of }]
  }, [list])
  return ({ module_uuid }) => {
    const steps = samples.current.slice(1).map(({ atMs, of }, index) => {
      const before = samples.current[index]
      const [from, to] = [before.of.get(module_uuid), of.get(module_uuid)]
      const calls = from === undefined || to === undefined ? null : to.calls - from.calls
      return {
        atMs,
        callsPerSecond: calls === null ? null : (1_000 * calls) / (atMs - before.atMs),
        failureShare: calls && from && to ? (to.failures - from.failures) / calls : null,
        meanMs: calls && from && to ? (to.cpuMs - from.cpuMs) / calls : null,
      }
    })
    return {
      times: steps.map(({ atMs }) => atMs),
      callsPerSecond: steps.map(({ callsPerSecond }) => callsPerSecond),
      failureShare: steps.map(({ failureShare }) => failureShare),
      meanMs: steps.map(({ meanMs }) => meanMs),
    }
  }
}

function sampleOf({ module_meta, module_state }: Module): Sample {
  return {
    calls: module_meta.access_count,
    failures: module_state.failed_executions,
    cpuMs: module_state.cpu_ms,
  }
}
