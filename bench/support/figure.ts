/** What a scenario reports: one number per round, its target, and the verdict. */

export interface Figure {
  /** What was measured, of which subject. */
  readonly name: string
  readonly unit: string
  /** One value per round. */
  readonly values: readonly number[]
  /** The median must not be above this. */
  readonly target?: number
  /** The median must not be below this. */
  readonly atLeast?: number
  /** Why the figure is not shown; such a figure has no values. */
  readonly withheld?: string
  /** What a reader must know to read it right. */
  readonly note?: string
}

export type Verdict = 'met' | 'missed' | 'withheld' | ''

export interface Scenario {
  /** As on the command line. */
  readonly name: string
  /** The one question that it answers. */
  readonly question: string
  run(options: RunOptions): Promise<Figure[]>
}

export interface RunOptions {
  readonly rounds: number
  /** Length of each measurement, in seconds. */
  readonly seconds: number
  /** policy-sim and fleet-2000: the policies to compare; empty for all. */
  readonly policies: readonly string[]
  /** policy-sim: share of prompts that begin with a common system prompt, 0 to 1. */
  readonly shared: number
  /** Root of another checkout, built, that relay scenarios measure beside this one; null for none. */
  readonly against: string | null
  /** Tells the reader that something goes on. */
  progress(text: string): void
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

export function verdict(figure: Figure): Verdict {
  if (figure.withheld !== undefined) return 'withheld'
  const { target, atLeast } = figure
  if (target === undefined && atLeast === undefined) return ''
  const value = median(figure.values)
  return value <= (target ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY)
    ? 'met'
    : 'missed'
}

/** A figure that could not be taken, and why. */
export function withheldFigure(name: string, reason: string): Figure {
  return { name, unit: '', values: [], withheld: reason }
}
