/** Decides whether the calls of a module run inline or in the pool. @hot */
import type { LoadedModule } from './guest-task.ts'

/** Calls with little fuel in the pool before a module runs inline. */
const PROOF_CALLS = 16
/** Factor by which this number grows after a call exceeded the inline fuel, and its maximum. */
const PROOF_GROWTH = 8
const MAX_PROOF_CALLS = 8_192

interface Standing {
  /** Consecutive calls with little fuel. */
  cheapCalls: number
  proofCalls: number
}

export class Placements {
  readonly #inlineFuel: number
  readonly #standings = new Map<string, Standing>()

  /** @param inlineFuel fuel of an inline call, units */
  constructor(inlineFuel: number) {
    this.#inlineFuel = inlineFuel
  }

  isInline(module: LoadedModule): boolean {
    if (module.placement !== 'auto') return module.placement === 'inline'
    const standing = this.#standings.get(module.uuid)
    return standing !== undefined && standing.cheapCalls >= standing.proofCalls
  }

  /** Records the fuel of a call. */
  measured(module: LoadedModule, fuel: number): void {
    if (module.placement !== 'auto') return
    const standing = this.#standingOf(module)
    // Half of the inline fuel, with a margin for larger inputs.
    if (fuel * 2 <= this.#inlineFuel) standing.cheapCalls++
    else standing.cheapCalls = 0
  }

  /** Records that an inline call exceeded its fuel. */
  exceeded(module: LoadedModule): void {
    const standing = this.#standingOf(module)
    standing.cheapCalls = 0
    standing.proofCalls = Math.min(MAX_PROOF_CALLS, standing.proofCalls * PROOF_GROWTH)
  }

  /** Forgets modules that are no longer registered. */
  update(modules: readonly LoadedModule[]): void {
    const kept = new Set(modules.map(({ uuid }) => uuid))
    for (const uuid of this.#standings.keys()) if (!kept.has(uuid)) this.#standings.delete(uuid)
  }

  #standingOf({ uuid }: LoadedModule): Standing {
    let standing = this.#standings.get(uuid)
    if (standing === undefined) {
      standing = { cheapCalls: 0, proofCalls: PROOF_CALLS }
      this.#standings.set(uuid, standing)
    }
    return standing
  }
}

/** OnPick runs inline, wherever the module's other handlers run. */
export function isPicker({ attachPoints }: Pick<LoadedModule, 'attachPoints'>): boolean {
  return attachPoints.includes('OnPick')
}

/** Returns true if calls of the module may run inline. */
export function mayRunHere(module: Pick<LoadedModule, 'attachPoints' | 'placement'>): boolean {
  return module.placement !== 'pool' || isPicker(module)
}

/** Factor of `inline.fuel` for a start on the data thread. The runtime of Go needs two. */
export const INLINE_START = 4

/** Fuel for a start on the data thread, units. @param fuel of an inline call, units */
export function inlineStartFuel(fuel: number): number {
  return INLINE_START * fuel
}
