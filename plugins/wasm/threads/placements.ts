/** Where the calls of each module run: on the thread that serves the request, or in the pool. @hot */
import type { LoadedModule } from './guest-task.ts'

/** Calls in the pool that must have burnt little before a module is tried on the serving thread. */
const PROOF_CALLS = 16
/** After it burnt too much there, its proof takes so many times as many calls; at most so many. */
const PROOF_GROWTH = 8
const MAX_PROOF_CALLS = 8_192

interface Standing {
  /** Calls in a row that burnt little. */
  cheapCalls: number
  proofCalls: number
}

export class Placements {
  readonly #inlineFuel: number
  readonly #standings = new Map<string, Standing>()

  /** @param inlineFuel most units of a call on the serving thread */
  constructor(inlineFuel: number) {
    this.#inlineFuel = inlineFuel
  }

  isInline(module: LoadedModule): boolean {
    if (module.placement !== 'auto') return module.placement === 'inline'
    const standing = this.#standings.get(module.uuid)
    return standing !== undefined && standing.cheapCalls >= standing.proofCalls
  }

  /** A call has burnt so many units. */
  measured(module: LoadedModule, fuel: number): void {
    if (module.placement !== 'auto') return
    const standing = this.#standingOf(module)
    // Half of the budget: who is close to it would go over it sooner or later.
    if (fuel * 2 <= this.#inlineFuel) standing.cheapCalls++
    else standing.cheapCalls = 0
  }

  /** A call on the serving thread went beyond the budget. */
  exceeded(module: LoadedModule): void {
    const standing = this.#standingOf(module)
    standing.cheapCalls = 0
    standing.proofCalls = Math.min(MAX_PROOF_CALLS, standing.proofCalls * PROOF_GROWTH)
  }

  forget(uuid: string): void {
    this.#standings.delete(uuid)
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

/** Workers are chosen on the serving thread, wherever the module's other handlers run. */
export function isPicker({ attachPoints }: Pick<LoadedModule, 'attachPoints'>): boolean {
  return attachPoints.includes('OnPick')
}

/** On the serving thread. */
export function mayRunHere(module: Pick<LoadedModule, 'attachPoints' | 'placement'>): boolean {
  return module.placement !== 'pool' || isPicker(module)
}
