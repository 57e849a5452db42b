/** Reasoning efforts of vendors: levels that engines lack, and efforts for budgets of tokens. */
import type { ReasoningOptions, WorkerEntry } from '#kernel'
import { answerErrors } from '../answers/answer-errors.ts'

/** Efforts that vendors added, as the nearest that the engines' models know. */
const NEAREST: ReadonlyMap<string, string> = new Map([
  ['xhigh', 'high'],
  ['max', 'high'],
])

/** What becomes of those efforts at a worker. */
export type HighEffort = 'keep' | 'lower' | 'reject'
const HIGH_EFFORTS: readonly string[] = ['keep', 'lower', 'reject'] satisfies HighEffort[]

/** @param usual without the label `effort` */
export function highEffortOf(labels: WorkerEntry['labels'], usual: HighEffort): HighEffort {
  return HIGH_EFFORTS.includes(labels.effort) ? (labels.effort as HighEffort) : usual
}

/** @throws unsupported_by_worker (400) */
export function engineEffort(effort: string, mode: HighEffort): string {
  const nearest = mode === 'keep' ? effort : (NEAREST.get(effort) ?? effort)
  if (mode !== 'reject' || nearest === effort) return nearest
  throw answerErrors.unsupported_by_worker.with({ param: 'reasoning_effort' }, `the effort '${effort}'`)
}

/** Thinking budgets of the vendor's format as efforts. */
export function effortOfBudget({ isEnabled, budgetTokens }: ReasoningOptions): string | undefined {
  if (isEnabled === false) return 'none'
  if (budgetTokens === undefined) return undefined
  if (budgetTokens < 4_096) return 'low'
  return budgetTokens < 16_384 ? 'medium' : 'high'
}
