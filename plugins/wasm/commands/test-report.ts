/** Output of `weir wasm test`: steps, differences, the effect of failures in a gateway, and times. */
import { relative } from 'node:path'
import type { AttachPoint, ModuleDescription } from '../../../wasm-sdk/abi.ts'
import { renderTable } from '../../cli/output.ts'
import type { WasmConfig } from '../config.ts'
import { PAGE_BYTES } from '../rewrite/plan.ts'
import type { CaseStep, ModuleCase } from '../testing/module-case.ts'
import type { CaseResult, StepResult } from '../testing/run-cases.ts'
import type { CallResult } from '../testing/runner.ts'
import { expectationOf } from './golden-file.ts'
import { plural, showBytes, showMs, spreadOf } from './units.ts'

export interface TestReport {
  readonly file: string
  readonly description: ModuleDescription
  readonly limits: WasmConfig
  readonly results: readonly CaseReport[]
  readonly calls: ReadonlyMap<AttachPoint, readonly CallResult[]>
}

export interface CaseReport {
  readonly file: string
  readonly moduleCase: ModuleCase
  readonly result: CaseResult
  /** The file was changed. */
  readonly isUpdated: boolean
  /** The file matches the result. */
  readonly isOk: boolean
}

/** Share of the memory limit from which a failure may be caused by it. */
const NEAR_LIMIT = 3 / 4

export function renderTest(report: TestReport): string {
  const { results } = report
  const lines = results.flatMap((one) => renderCase(one, report))
  const steps = results.flatMap(({ result }) => result.steps)
  const failed = steps.filter(({ differences }) => differences.length > 0).length
  const updated = results.filter(({ isUpdated }) => isUpdated).length
  const counts = `${plural(steps.length, 'step')} in ${plural(results.length, 'case')}: ${steps.length - failed} ok, ${failed} failed`
  lines.push('', updated > 0 ? `${counts}; ${plural(updated, 'file')} written` : counts)
  lines.push('', renderTimes(report))
  return lines.join('\n')
}

function renderCase({ file, moduleCase, result, isUpdated }: CaseReport, report: TestReport): string[] {
  const lines = [`${file}: ${moduleCase.title}${isUpdated ? ' (written)' : ''}`]
  for (const [at, step] of result.steps.entries()) {
    const isOk = step.differences.length === 0
    lines.push(`  ${isOk ? 'ok  ' : 'FAIL'} ${at + 1} ${moduleCase.steps[at].on}`)
    if (!isOk) lines.push(...explain(moduleCase.steps[at], step).map((line) => `       ${line}`))
    const treatment = treatmentOf(moduleCase.steps[at], step, report)
    if (treatment !== null) lines.push(`       ${treatment}`)
  }
  return lines
}

/** Differences as lines to remove from the case and to add. */
function explain(step: CaseStep, { differences, observed }: StepResult): string[] {
  if (observed.failure !== null || step.expect.fails !== undefined) return [...differences]
  const isPattern = JSON.stringify(step.expect).includes('"matches"')
  const found = lineDiff(
    JSON.stringify(step.expect, null, 2),
    JSON.stringify(expectationOf(step, observed), null, 2),
  )
  // Repeated headers and patterns cannot be expressed as lines.
  return isPattern || found.length === 0 ? [...differences] : found
}

/** Effect of a failed call in a gateway; null if the call succeeded. */
function treatmentOf({ on }: CaseStep, step: StepResult, { description, limits }: TestReport): string | null {
  if (step.observed.failure === null) return null
  const limitBytes = limits.memoryPages * PAGE_BYTES
  const memory =
    step.memoryBytes >= limitBytes * NEAR_LIMIT
      ? `its memory was near the limit of ${showBytes(limitBytes)}; `
      : ''
  const { failures, coolOffMs } = limits.breaker
  const policy = description.on_failure ?? 'open'
  return `${memory}${EFFECTS[policy](on)} (on_failure ${policy}); ${failures} failures in a row suspend the module for ${coolOffMs / 1000} s`
}

const EFFECTS: Readonly<Record<'open' | 'closed', (on: AttachPoint) => string>> = {
  open: (on) => OPEN_EFFECTS[on] ?? 'the gateway continues without the module',
  closed: (on) => CLOSED_EFFECTS[on] ?? 'the gateway responds with 500 wasm_module_failed',
}

const OPEN_EFFECTS: Readonly<Partial<Record<AttachPoint, string>>> = {
  OnStreamEvent: 'the gateway passes the event unchanged',
  OnText: 'the gateway passes the text unchanged',
  OnToolCall: 'the tool runs unchanged',
  OnPick: 'the default policy picks',
}

const CLOSED_EFFECTS: Readonly<Partial<Record<AttachPoint, string>>> = {
  OnStreamEvent: 'the gateway ends the stream with an error event',
  OnText: 'the gateway ends the answer with an error',
  OnPromptText: 'the gateway responds with 500 wasm_module_failed, and no model gets the prompt',
  OnToolCall: 'the tool does not run and the model gets an error',
  OnPick: 'the default policy picks',
}

function renderTimes({ calls }: TestReport): string {
  const headings = ['ATTACH POINT', 'CALLS', 'P50 MS', 'P99 MS', 'MAX MS', 'MEMORY KIB']
  const rows = [...calls].map(([point, results]) => {
    const { count, p50Ms, p99Ms, maxMs } = spreadOf(results.map(({ elapsedMs }) => elapsedMs))
    return [point, count, showMs(p50Ms), showMs(p99Ms), showMs(maxMs), memoryOf(results) / 1024]
  })
  return renderTable(headings, rows)
}

function memoryOf(results: readonly CallResult[]): number {
  return Math.max(...results.map(({ memoryBytes }) => memoryBytes))
}

/** The report as JSON; times in the guest, milliseconds. */
export function toTestJson(report: TestReport): unknown {
  const { file, description, limits, results, calls } = report
  return {
    isOk: results.every(({ isOk }) => isOk),
    module: relative('.', file),
    description,
    limits: { timeoutMs: limits.timeoutMs, memoryPages: limits.memoryPages },
    cases: results.map(({ file, moduleCase, result, isUpdated, isOk }) => ({
      file,
      title: moduleCase.title,
      isOk,
      isUpdated,
      steps: result.steps.map((step, at) => ({
        on: moduleCase.steps[at].on,
        isOk: step.differences.length === 0,
        ...step,
        treatment: treatmentOf(moduleCase.steps[at], step, report),
      })),
    })),
    calls: Object.fromEntries(
      [...calls].map(([point, all]) => [
        point,
        { ...spreadOf(all.map(({ elapsedMs }) => elapsedMs)), memoryBytes: memoryOf(all) },
      ]),
    ),
  }
}

/** Longer texts are not compared, since the time is quadratic. */
const MAX_LINES = 1_000

/** Differences of two texts by line, with context. @returns lines that begin with `-`, `+` or a space */
export function lineDiff(before: string, after: string, context = 2): string[] {
  const old = before.split('\n')
  const now = after.split('\n')
  const script = old.length + now.length > MAX_LINES ? wholesale(old, now) : shortest(old, now)
  const isNear = script.map((_, at) =>
    script.slice(Math.max(0, at - context), at + context + 1).some((line) => line[0] !== ' '),
  )
  return script.flatMap((line, at) => {
    if (isNear[at]) return [line]
    return at > 0 && isNear[at - 1] ? ['  …'] : []
  })
}

function wholesale(old: readonly string[], now: readonly string[]): string[] {
  return [...old.map((line) => `- ${line}`), ...now.map((line) => `+ ${line}`)]
}

/** By the longest common subsequence. */
function shortest(old: readonly string[], now: readonly string[]): string[] {
  const common = table(old, now)
  const script: string[] = []
  let i = 0
  let j = 0
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      script.push(`  ${old[i++]}`)
      j++
    } else if (j >= now.length || (i < old.length && common[i + 1][j] >= common[i][j + 1])) {
      script.push(`- ${old[i++]}`)
    } else script.push(`+ ${now[j++]}`)
  }
  return script
}

/** At [i][j]: length of the longest common subsequence from i and j on. */
function table(old: readonly string[], now: readonly string[]): Uint16Array[] {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1))
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      rows[i][j] = old[i] === now[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1])
    }
  }
  return rows
}
