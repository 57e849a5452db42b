/** Figures of this build beside those of another checkout's, taken by turns in the same run. */
import type { Figure } from './figure.ts'

/** Most that a change may cost where it is not meant to cost anything. */
const MOST = 1.03

/** @param before empty when there was nothing to compare with */
export function againstFigures(
  what: string,
  now: readonly number[],
  before: readonly number[],
  unit = 'µs',
): Figure[] {
  if (before.length === 0) return []
  return [
    { name: `${what}, before`, unit, values: before },
    {
      name: `${what}, gateway / before`,
      unit: '×',
      values: now.map((value, round) => value / before[round]),
      target: MOST,
    },
  ]
}
