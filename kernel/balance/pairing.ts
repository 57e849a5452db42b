/**
 * Whether a request goes to one worker or to a pair of a prefill and a decode worker.
 * @hot
 */
import type { RandomSource } from '../contracts/policy.ts'
import type { Breakers } from './breakers.ts'
import { type CompiledTable, isListed, type ModelRoute } from './compiled-table.ts'

/**
 * Draws by the number of workers of each side; a side that lists the model goes before one of wildcard workers alone,
 * and a side without anybody available stands back.
 *
 * @param model canonical id
 */
export function drawsPair(
  table: CompiledTable,
  model: string,
  { breakers, random }: { breakers: Breakers; random: RandomSource },
): boolean {
  if (!table.hasPairs) return false
  const prefill = table.routeOf(model, 'prefill')
  const decode = table.routeOf(model, 'decode')
  if (prefill === null || decode === null) return false
  const whole = table.routeOf(model, 'whole')
  if (whole === null) return true
  const takesPair = drawn(whole, prefill, decode, random)
  const isPairUp = hasAvailable(prefill, breakers) && hasAvailable(decode, breakers)
  if (takesPair) return isPairUp || !hasAvailable(whole, breakers)
  return isPairUp && !hasAvailable(whole, breakers)
}

function drawn(whole: ModelRoute, prefill: ModelRoute, decode: ModelRoute, random: RandomSource): boolean {
  const isPairListed = isListed(prefill) && isListed(decode)
  if (isListed(whole) !== isPairListed) return isPairListed
  const pairWorkers = prefill.holderCount + decode.holderCount
  return random() * (whole.holderCount + pairWorkers) < pairWorkers
}

function hasAvailable({ tiers }: ModelRoute, breakers: Breakers): boolean {
  for (let i = 0; i < tiers.length; i++) {
    const { workers } = tiers[i]
    for (let at = 0; at < workers.length; at++) if (breakers.isAvailable(workers[at])) return true
  }
  return false
}
