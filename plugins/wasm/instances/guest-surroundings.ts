/** What the guests of one thread share, wherever the thread stands: values and counters, and names that they count under. */
import { randomBytes } from 'node:crypto'
import type { GuestSurroundings } from './guest-instance.ts'
import { type HostParts, hostFunctions } from './host-functions.ts'
import type { PendingCounts, SharedState } from './shared-state.ts'

/** Of one module: more names would let a guest fill the metrics. */
export const MAX_COUNTED_NAMES = 32

/**
 * @param logLevel of the gateway, by name
 * @param pendingCounts told of what calls count, where calls may be made again
 */
export function guestSurroundings(
  state: SharedState,
  logLevel: string,
  pendingCounts?: PendingCounts,
): GuestSurroundings {
  const countedNames = new Map<string, Set<string>>()
  const host: HostParts = {
    state,
    nowMs: () => Date.now(),
    randomBytes,
    pendingCounts,
    mayCount(owner, name) {
      const names = countedNames.get(owner) ?? new Set()
      countedNames.set(owner, names)
      if (names.size < MAX_COUNTED_NAMES) names.add(name)
      return names.has(name)
    },
  }
  return { logLevel: guestLogLevel(logLevel), hostFunctions: (facts) => hostFunctions(host, facts) }
}

/** As guests get it: 1 debug, 2 info, 3 warn, 4 error, and beyond that none. */
function guestLogLevel(level: string): number {
  const place = ['trace', 'debug', 'info', 'warn', 'error'].indexOf(level)
  return place < 0 ? 0x7fff_ffff : Math.max(1, place)
}
