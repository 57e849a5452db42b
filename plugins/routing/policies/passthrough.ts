/**
 * passthrough: the first available worker; for one upstream, or a balancer behind the gateway.
 * @hot
 */
import type { CandidateView, Logger, Policy } from '#kernel'

export class Passthrough implements Policy {
  readonly name = 'passthrough'
  readonly needsBody = false
  private readonly model: string
  private readonly log: Logger | null
  private hasWarned = false

  /** @param model for the warning */
  constructor(model: string, log: Logger | null) {
    this.model = model
    this.log = log
  }

  pick(candidates: CandidateView): number {
    if (candidates.members.length > 1 && !this.hasWarned) {
      this.hasWarned = true
      const fields = { model: this.model, workers: candidates.members.length }
      this.log?.warn(fields, 'policy passthrough uses only the first available of several workers')
    }
    return 0
  }
}
