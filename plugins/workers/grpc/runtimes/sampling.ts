/** Pieces of sampling settings that several engines share. */
import type { EngineConstraint } from '#kernel'

/** Keys are ids in decimal digits, as some engines have them. */
export function biasByText(
  bias: ReadonlyMap<number, number> | undefined,
): ReadonlyMap<string, number> | undefined {
  if (bias === undefined || bias.size === 0) return undefined
  return new Map([...bias].map(([id, value]) => [String(id), value]))
}

/** Engines that count from 0 know no other way to switch it off. */
export function topKFromZero(topK: number | undefined): number {
  return topK === undefined || topK < 0 ? 0 : topK
}

/** A seed of any size, brought into what the field holds. */
export function seedWithin(seed: number | undefined, max: number): number | undefined {
  if (seed === undefined) return undefined
  return Math.min(max, Math.max(0, Math.trunc(seed)))
}

/** The text when the constraint goes by this name. */
export function under(constraint: EngineConstraint | null, name: string): string | undefined {
  return constraint?.name === name ? constraint.text : undefined
}

export const MAX_INT32 = 2_147_483_647
