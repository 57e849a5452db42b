/** Parts of a thread that every call to a worker uses. */
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { Logger } from '../contracts/log.ts'
import type { ModelTargets } from '../contracts/model-targets.ts'
import type { TrafficWatch } from '../contracts/traffic.ts'
import type { UsageEstimator } from '../contracts/upstream.ts'
import type { ClientHeaders } from './response-headers.ts'
import type { RetryRules } from './retry.ts'
import type { StalledStreams } from './stalled-streams.ts'
import type { Transports } from './transports.ts'
import type { WorkerLimits } from './worker-limits.ts'
import type { OutgoingHeaders } from './worker-request.ts'
import type { WorkerWarnings } from './worker-warnings.ts'

export interface CallParts {
  readonly balance: WorkerBalance
  readonly outgoing: OutgoingHeaders
  readonly clientHeaders: ClientHeaders
  readonly warnings: WorkerWarnings
  readonly transports: Transports
  readonly limits: WorkerLimits
  readonly retry: RetryRules
  /** Null without a traffic observer; set before the first call. */
  traffic: TrafficWatch | null
  /** Null without virtual models; set before the first call. */
  targets: ModelTargets | null
  readonly streams: StalledStreams
  /** Token usage of relayed responses is counted. */
  countsUsage: boolean
  /** Null if no plugin can count tokens. */
  estimator: UsageEstimator | null
  readonly log: Logger
}
