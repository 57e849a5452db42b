/** Guards of other plugins, asked in turn before a call runs: the first that rejects ends it, changes add up. */
import type { GuardDecision, GuardedCall, Logger, ToolCallGuard, ToolCallGuardsService } from '#kernel'

const STOPPED = 'The call was stopped by a guard that failed.'

export class ToolCallGuardList implements ToolCallGuardsService {
  #guards: readonly ToolCallGuard[] = []

  add(guard: ToolCallGuard): () => void {
    this.#guards = [...this.#guards, guard]
    return () => {
      this.#guards = this.#guards.filter((other) => other !== guard)
    }
  }

  /** Never rejects: a guard that fails stops the call. */
  async check(call: GuardedCall, log: Logger): Promise<GuardDecision> {
    let current = call
    for (const guard of this.#guards) {
      try {
        const decision = await guard.check(current)
        if (decision.action === 'reject') return decision
        if (decision.action === 'modify') current = { ...current, arguments: decision.arguments }
      } catch (error) {
        log.error({ guard: guard.name, error: (error as Error)?.message }, 'tool call guard failed')
        return { action: 'reject', text: STOPPED }
      }
    }
    return current === call ? { action: 'continue' } : { action: 'modify', arguments: current.arguments }
  }
}
