/** Result of one check of `weir doctor`. */

/** `skip`: what the check needs is not there, so nothing is known. */
export type Verdict = 'ok' | 'warn' | 'fail' | 'skip'

export interface Finding {
  readonly verdict: Verdict
  /** What was checked: `configuration`, `certificate`, `worker`, … */
  readonly check: string
  readonly text: string
  /** What to do about it. */
  readonly advice?: string
}

export const ok = (check: string, text: string): Finding => ({ verdict: 'ok', check, text })
export const warn = (check: string, text: string, advice: string): Finding => ({
  verdict: 'warn',
  check,
  text,
  advice,
})
export const fail = (check: string, text: string, advice: string): Finding => ({
  verdict: 'fail',
  check,
  text,
  advice,
})
export const skip = (check: string, text: string, advice?: string): Finding => ({
  verdict: 'skip',
  check,
  text,
  advice,
})
