/** Schemas of numeric settings. */
import { Type } from '../contracts/type.ts'

/** Longest delay of a Node timer, milliseconds; a longer one would fire at once. */
export const MAX_TIMER_MS = 2_147_483_647

interface Range {
  readonly default: number
  /** Inclusive. */
  readonly min?: number
  /** Exclusive. */
  readonly above?: number
  /** Inclusive. */
  readonly max?: number
}

export function integer(range: Range, description: string) {
  return Type.Integer({ ...toSchema(range), description })
}

export function number(range: Range, description: string) {
  return Type.Number({ ...toSchema(range), description })
}

function toSchema({ default: value, min, above, max }: Range) {
  return {
    default: value,
    ...(min !== undefined && { minimum: min }),
    ...(above !== undefined && { exclusiveMinimum: above }),
    ...(max !== undefined && { maximum: max }),
  }
}
