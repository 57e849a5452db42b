/** Reasoning efforts of vendors: levels that engines lack, and efforts for budgets of tokens. */
import type { ReasoningOptions } from '#kernel'

/** Efforts that vendors added, as the nearest that the engines' models know. */
const NEAREST: ReadonlyMap<string, string> = new Map([
  ['xhigh', 'high'],
  ['max', 'high'],
])

export function engineEffort(effort: string): string {
  return NEAREST.get(effort) ?? effort
}

/** Thinking budgets of the vendor's format as efforts. */
export function effortOfBudget({ isEnabled, budgetTokens }: ReasoningOptions): string | undefined {
  if (isEnabled === false) return 'none'
  if (budgetTokens === undefined) return undefined
  if (budgetTokens < 4_096) return 'low'
  return budgetTokens < 16_384 ? 'medium' : 'high'
}
