/** Command-line flags and environment variables of the limits plugin. */
import type { ConfigFlag } from '#kernel'

export const limitsFlags: readonly ConfigFlag[] = [
  {
    flag: 'max-concurrent-requests',
    env: 'WEIR_MAX_CONCURRENT_REQUESTS',
    path: ['plugins', 'limits', 'maxConcurrentRequests'],
    kind: 'integer',
    placeholder: 'count',
    help: 'maximum number of running requests; enables the limits plugin, as do the next three flags',
  },
  {
    flag: 'queue-size',
    path: ['plugins', 'limits', 'queueSize'],
    kind: 'integer',
    placeholder: 'count',
    help: 'maximum number of waiting requests; 0 disables the queue',
  },
  {
    flag: 'queue-timeout-ms',
    path: ['plugins', 'limits', 'queueTimeoutMs'],
    kind: 'integer',
    placeholder: 'ms',
    help: 'maximum time in the queue, in milliseconds',
  },
  {
    flag: 'rate-limit',
    path: ['plugins', 'limits', 'requestsPerSecond'],
    kind: 'number',
    placeholder: 'per second',
    help: 'requests admitted per second',
  },
]
