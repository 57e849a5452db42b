/** Chooses a target by weight, at random or by a key. */
import { hash } from 'node:crypto'

/**
 * @param weights of which one is above 0
 * @param share 0 up to but not including 1
 * @returns a position in the list
 */
export function chooseByWeight(weights: readonly number[], share: number): number {
  let rest = share * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [index, weight] of weights.entries()) {
    if (rest < weight) return index
    rest -= weight
  }
  return weights.findLastIndex((weight) => weight > 0)
}

/** The same number for the same key on every thread and instance, uniform from 0 up to but not including 1. */
export function shareOfKey(key: string): number {
  return Number.parseInt(hash('sha256', key, 'hex').slice(0, 12), 16) / 2 ** 48
}
