/** Writes down how a worker was chosen; made only for requests that are being debugged. */
import type { CandidateReport } from '../contracts/hook.ts'
import type { Policy } from '../contracts/policy.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { AttemptBooks } from './counted-attempt.ts'
import type { Choice } from './worker-balance.ts'

/** Fleets may be large, and reports are kept and shown. */
const MAX_CANDIDATES = 64

/** Call it when the policy has chosen, before the breaker is asked and the attempt is counted. */
export function reportChoice(policy: Policy, members: readonly WorkerEntry[], books: AttemptBooks): Choice {
  const { counters, breakers } = books
  const candidates = members.slice(0, MAX_CANDIDATES).map(
    (worker): CandidateReport => ({
      workerId: worker.id,
      url: worker.url,
      inFlight: counters.inFlight(worker.slot),
      breaker: breakers.state(worker),
      isAvailable: breakers.isAvailable(worker),
    }),
  )
  return { explanation: policy.explain?.() ?? null, candidates }
}
