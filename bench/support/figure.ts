/** Figures that a scenario reports: one value per round, a target and the verdict. */

export interface Figure {
  /** Measured quantity and subject. */
  readonly name: string
  readonly unit: string
  /** Value of the varied quantity: figures of one name are a curve. */
  readonly x?: number
  /** One value per round. */
  readonly values: readonly number[]
  /** The median must not be above this. */
  readonly target?: number
  /** The median must not be below this. */
  readonly atLeast?: number
  /** Reason why the figure is not shown; it has no values then. */
  readonly withheld?: string
  /** Conditions of the measurement. */
  readonly note?: string
}

export type Verdict = 'met' | 'missed' | 'withheld' | ''

export interface Scenario {
  /** Name on the command line. */
  readonly name: string
  /** The question that the figures answer. */
  readonly question: string
  /** The varied quantity, if the figures are curves. */
  readonly axis?: string
  run(options: RunOptions): Promise<Figure[]>
  /** Compares the gateways of two checkouts; the last figure is the ratio. Absent if the scenario has no such form. */
  compare?(options: CompareOptions): Promise<Figure[]>
}

export type ComparableScenario = Scenario & Required<Pick<Scenario, 'compare'>>

export interface CompareOptions extends Pick<RunOptions, 'rounds' | 'seconds' | 'progress'> {
  /** Root of the other checkout, which is built. */
  readonly against: string
}

export interface RunOptions {
  readonly rounds: number
  /** Length of each measurement, in seconds. */
  readonly seconds: number
  /** policy-sim and fleet-2000: the policies to compare; empty for all. */
  readonly policies: readonly string[]
  /** policy-sim: share of prompts that begin with a common system prompt, 0 to 1. */
  readonly shared: number
  /** Prints the current step. */
  progress(text: string): void
}

/** Prints the current step of a scenario. */
export function progressOf({ name }: Pick<Scenario, 'name'>): (text: string) => void {
  return (text) => process.stderr.write(`${name}: ${text}\n`)
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

/** Creates a figure without values, for a measurement that was not possible. */
export function withheldFigure(name: string, reason: string): Figure {
  return { name, unit: '', values: [], withheld: reason }
}

/** Divides round by round. */
export function ratios(values: readonly number[], base: readonly number[]): number[] {
  return values.map((value, round) => value / base[round])
}
