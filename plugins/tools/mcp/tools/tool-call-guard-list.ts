/** Guards of other plugins, called in order before a call: the first rejection ends it, changes accumulate. */
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

  /** Never rejects: a failing guard rejects the call. */
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
