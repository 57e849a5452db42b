/** Command-line flags of the policies plugin. */
import type { ConfigFlag } from '#kernel'

const setting = (...keys: string[]) => ['plugins', 'policies', ...keys]

export const policiesFlags: readonly ConfigFlag[] = [
  {
    flag: 'sticky-routing-keys',
    path: setting('stickyRoutingKeys'),
    kind: 'switch',
    help: 'send requests of the same session to one worker, under any policy',
  },
  {
    flag: 'cache-threshold',
    path: setting('cacheAware', 'cacheThreshold'),
    kind: 'number',
    placeholder: '0 to 1',
    help: 'minimum cached share of the prompt for a worker to be preferred (cache_aware)',
  },
  {
    flag: 'balance-abs-threshold',
    path: setting('cacheAware', 'balanceAbsThreshold'),
    also: [setting('bucket', 'balanceAbsThreshold')],
    kind: 'integer',
    placeholder: 'count',
    help: 'load difference above which the least loaded worker is picked, with --balance-rel-threshold (cache_aware, bucket)',
  },
  {
    flag: 'balance-rel-threshold',
    path: setting('cacheAware', 'balanceRelThreshold'),
    also: [setting('bucket', 'balanceRelThreshold')],
    kind: 'number',
    placeholder: 'ratio',
    help: 'load ratio above which the least loaded worker is picked, with --balance-abs-threshold (cache_aware, bucket)',
  },
  {
    flag: 'balance-token-usage-threshold',
    path: setting('cacheAware', 'balanceTokenUsageThreshold'),
    kind: 'number',
    placeholder: '0 to 1',
    help: 'difference of KV cache use above which the least loaded worker is picked (cache_aware)',
  },
  {
    flag: 'overload-token-usage-threshold',
    path: setting('cacheAware', 'overloadTokenUsageThreshold'),
    kind: 'number',
    placeholder: '0 to 1',
    help: 'KV cache use of any worker above which the least loaded worker is picked (cache_aware)',
  },
  {
    flag: 'eviction-interval',
    path: setting('cacheAware', 'evictionIntervalSecs'),
    also: [setting('manual', 'sweepIntervalSecs')],
    kind: 'number',
    placeholder: 'seconds',
    help: 'interval of sweeps that evict prefixes and sessions (cache_aware, manual)',
  },
  {
    flag: 'max-tree-size',
    path: setting('cacheAware', 'maxTreeSize'),
    kind: 'integer',
    placeholder: 'bytes',
    help: 'maximum prompt bytes remembered per worker (cache_aware)',
  },
  {
    flag: 'max-idle-secs',
    path: setting('manual', 'maxIdleSecs'),
    kind: 'integer',
    placeholder: 'seconds',
    help: 'idle time after which a session is deleted (manual)',
  },
  {
    flag: 'assignment-mode',
    path: setting('manual', 'assignmentMode'),
    kind: 'text',
    placeholder: 'mode',
    help: 'worker of a new session: random, min_load or min_group (manual)',
  },
  {
    flag: 'prefix-token-count',
    path: setting('prefixHash', 'prefixTokenCount'),
    kind: 'integer',
    placeholder: 'tokens',
    help: 'number of leading prompt tokens that are hashed (prefix_hash)',
  },
  {
    flag: 'prefix-hash-load-factor',
    path: setting('prefixHash', 'loadFactor'),
    kind: 'number',
    placeholder: 'factor',
    help: 'maximum requests in flight of the chosen worker, as a multiple of the mean (prefix_hash)',
  },
  {
    flag: 'least-load-kv-pressure-weight',
    path: setting('leastLoad', 'kvPressureWeight'),
    kind: 'number',
    placeholder: 'seconds',
    help: 'seconds added to the estimated wait at 50 % KV cache use (least_load)',
  },
  {
    flag: 'least-load-default-throughput',
    path: setting('leastLoad', 'defaultThroughput'),
    kind: 'number',
    placeholder: 'tokens per second',
    help: 'throughput of an engine that does not report it (least_load)',
  },
  {
    flag: 'least-load-mean-prefill-tokens',
    path: setting('leastLoad', 'meanPrefillTokens'),
    kind: 'integer',
    placeholder: 'tokens',
    help: 'assumed length of a prompt that was not tokenized (least_load)',
  },
]
