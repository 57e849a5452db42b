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

type FindingWithAdvice = (check: string, text: string, advice: string) => Finding
type FindingWithoutAdvice = (check: string, text: string, advice?: string) => Finding

function findingOf(verdict: Verdict): FindingWithoutAdvice {
  return (check, text, advice) => ({ verdict, check, text, advice })
}

export const ok: FindingWithoutAdvice = findingOf('ok')
export const warn: FindingWithAdvice = findingOf('warn')
export const fail: FindingWithAdvice = findingOf('fail')
export const skip: FindingWithoutAdvice = findingOf('skip')
