/** Host functions and log level that all guests of one thread share. */
import { randomBytes } from 'node:crypto'
import type { GuestSurroundings } from './guest-instance.ts'
import { type HostParts, hostFunctions } from './host-functions.ts'
import type { SharedState } from './shared-state.ts'

/** Counter names of one module; bounds the number of metric series. */
export const MAX_COUNTED_NAMES = 32

/** @param logLevel of the gateway, by name */
export function guestSurroundings(
  state: SharedState,
  logLevel: string,
  parts: Partial<Pick<HostParts, 'nowMs' | 'randomBytes' | 'pendingCounts'>> = {},
): GuestSurroundings {
  const countedNames = new Map<string, Set<string>>()
  const host: HostParts = {
    state,
    nowMs: () => Date.now(),
    randomBytes,
    ...parts,
    mayCount(owner, name) {
      const names = countedNames.get(owner) ?? new Set()
      countedNames.set(owner, names)
      if (names.size < MAX_COUNTED_NAMES) names.add(name)
      return names.has(name)
    },
  }
  return { logLevel: guestLogLevel(logLevel), hostFunctions: (instance) => hostFunctions(host, instance) }
}

/** Result of `get_log_level`: 1 debug, 2 info, 3 warn, 4 error; higher disables logging. */
function guestLogLevel(level: string): number {
  const place = ['trace', 'debug', 'info', 'warn', 'error'].indexOf(level)
  return place < 0 ? 0x7fff_ffff : Math.max(1, place)
}
