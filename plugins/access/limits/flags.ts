/** Flags and variables of admission. */
import type { ConfigFlag } from '#kernel'

export const limitsFlags: readonly ConfigFlag[] = [
  {
    flag: 'max-concurrent-requests',
    env: 'WEIR_MAX_CONCURRENT_REQUESTS',
    path: ['plugins', 'limits', 'maxConcurrentRequests'],
    kind: 'integer',
    placeholder: 'count',
    help: 'requests that run at once; others wait. Enables the limits plugin, as the next three do',
  },
  {
    flag: 'queue-size',
    env: null,
    path: ['plugins', 'limits', 'queueSize'],
    kind: 'integer',
    placeholder: 'count',
    help: 'requests that may wait; 0 refuses at once',
  },
  {
    flag: 'queue-timeout-ms',
    env: null,
    path: ['plugins', 'limits', 'queueTimeoutMs'],
    kind: 'integer',
    placeholder: 'ms',
    help: 'how long each may wait, in milliseconds',
  },
  {
    flag: 'rate-limit',
    env: null,
    path: ['plugins', 'limits', 'requestsPerSecond'],
    kind: 'number',
    placeholder: 'per second',
    help: 'requests that may begin each second',
  },
]
