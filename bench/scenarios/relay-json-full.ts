/** The short chat of relay-json with everything on that a production gateway has: what do all of them together cost? */
import { type Figure, type RunOptions, type Scenario, withheldFigure } from '../support/figure.ts'
import { isUnavailable } from '../support/gateway.ts'
import { measureJsonRelay } from '../support/json-relay.ts'

/** So high that nothing is refused: what is measured is the accounting. */
const LIMITS = {
  maxConcurrentRequests: 10_000,
  queueSize: 1_000,
  tenants: { default: { requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000 } },
}
/** One worker alone would leave a policy nothing to choose. */
const WORKERS = 4
/** Retries and breakers as they are by default: on. */
const FEATURES = {
  kernel: { policy: 'cache_aware', retry: { maxAttempts: 5 }, breaker: { enabled: true } },
  plugins: { limits: LIMITS },
}

async function run(options: RunOptions): Promise<Figure[]> {
  try {
    return await measureJsonRelay(
      { bodyBytes: 250, cpuTarget: 2.3, features: FEATURES, workers: WORKERS },
      options,
    )
  } catch (error) {
    if (!isUnavailable(error)) throw error
    return [
      withheldFigure('CPU per request, gateway / nginx', 'this build lacks cache_aware or the limits plugin'),
    ]
  }
}

export const relayJsonFull: Scenario = {
  name: 'relay-json-full',
  question: 'what does a 250-byte chat cost with cache_aware, retries, breakers, limits and metrics?',
  run,
}
