/** The table of settings that the command line and the environment can set: one row, two ways in, one path. */

export interface ConfigFlag {
  /** Long flag without the dashes. */
  readonly flag: string
  /** Environment variable, or null when only the flag exists. */
  readonly env: string | null
  /** Where the value goes, as in the file. */
  readonly path: readonly string[]
  /**
   * `list` is repeatable as a flag and comma-separated in the environment; `switch` also has a `--no-` form;
   * `constant` takes no value and sets the row's own.
   */
  readonly kind: 'text' | 'integer' | 'number' | 'list' | 'switch' | 'constant'
  readonly constant?: string | boolean
  /** Name of the value in help texts. */
  readonly placeholder?: string
  readonly help: string
  /** Never shown by `weir config show`. */
  readonly isSecret?: boolean
}

/** Precedence: flag, then environment, then file, then default. @source routing facts 5.8, 5.1 for the names */
export const CONFIG_FLAGS: readonly ConfigFlag[] = Object.freeze([
  {
    flag: 'host',
    env: 'WEIR_HOST',
    path: ['kernel', 'host'],
    kind: 'text',
    placeholder: 'address',
    help: 'address to listen on; 0.0.0.0 for every interface',
  },
  {
    flag: 'port',
    env: 'WEIR_PORT',
    path: ['kernel', 'port'],
    kind: 'integer',
    placeholder: 'port',
    help: 'port of the API; 0 takes any free one',
  },
  {
    flag: 'threads',
    env: 'WEIR_THREADS',
    path: ['kernel', 'threads'],
    kind: 'integer',
    placeholder: 'count',
    help: 'threads that serve requests; 0 runs everything on the main thread (default: cores minus one)',
  },
  {
    flag: 'policy',
    env: 'WEIR_POLICY',
    path: ['kernel', 'policy'],
    kind: 'text',
    placeholder: 'name',
    help: 'load balancing policy of models whose workers name none',
  },
  {
    flag: 'worker-url',
    env: 'WEIR_WORKER_URLS',
    path: ['plugins', 'workers', 'urls'],
    kind: 'list',
    placeholder: 'url',
    help: 'worker to register at start; repeatable',
  },
  {
    flag: 'dp-aware',
    env: 'WEIR_DP_AWARE',
    path: ['plugins', 'workers', 'dpAware'],
    kind: 'switch',
    help: 'each data-parallel rank of an engine is a worker of its own',
  },
  {
    flag: 'engine-metrics',
    env: null,
    path: ['plugins', 'workers', 'engineMetrics'],
    kind: 'switch',
    help: 'show what engines say about their load as metrics',
  },
  {
    flag: 'load-monitor-interval',
    env: null,
    path: ['plugins', 'workers', 'loadMonitorIntervalSecs'],
    kind: 'number',
    placeholder: 'seconds',
    help: 'how often engines are asked for their load while somebody reads it',
  },
  {
    flag: 'api-key',
    env: 'WEIR_API_KEY',
    path: ['plugins', 'auth', 'apiKey'],
    kind: 'text',
    placeholder: 'key',
    help: 'key that clients must present; better in the environment than here',
    isSecret: true,
  },
  {
    flag: 'tenant-api-key',
    env: null,
    path: ['plugins', 'auth', 'tenantKeys'],
    kind: 'list',
    placeholder: 'id:key',
    help: 'key of one tenant; repeatable',
    isSecret: true,
  },
  {
    flag: 'control-plane-api-keys',
    env: 'WEIR_CONTROL_PLANE_API_KEYS',
    path: ['plugins', 'auth', 'controlPlaneKeys'],
    kind: 'list',
    placeholder: 'id:name:role:key',
    help: 'key for administrative routes, role admin or user; repeatable',
    isSecret: true,
  },
  {
    flag: 'auth-off',
    env: null,
    path: ['kernel', 'auth'],
    kind: 'constant',
    constant: 'off',
    help: 'ask nobody for a key',
  },
  {
    flag: 'data-dir',
    env: 'WEIR_DATA_DIR',
    path: ['plugins', 'storage', 'dir'],
    kind: 'text',
    placeholder: 'folder',
    help: 'keep records in this folder; enables the storage plugin',
  },
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
  {
    flag: 'metrics-port',
    env: 'WEIR_METRICS_PORT',
    path: ['kernel', 'metrics', 'port'],
    kind: 'integer',
    placeholder: 'port',
    help: 'port of the Prometheus listener; 0 takes any free one',
  },
  {
    flag: 'log-level',
    env: 'WEIR_LOG_LEVEL',
    path: ['kernel', 'log', 'level'],
    kind: 'text',
    placeholder: 'level',
    help: 'trace, debug, info, warn, error or silent',
  },
  {
    flag: 'access-log',
    env: null,
    path: ['kernel', 'log', 'access'],
    kind: 'switch',
    help: 'one log line per request',
  },
  {
    flag: 'grace-ms',
    env: null,
    path: ['kernel', 'shutdown', 'graceMs'],
    kind: 'integer',
    placeholder: 'ms',
    help: 'time for running requests to end after a stop signal, in milliseconds',
  },
])

/** A secret that other programs know under the same name. */
export interface SharedVariable {
  readonly env: string
  readonly path: readonly string[]
}

/**
 * Read from the environment only. They may be there for others, so they set what an enabled plugin has and enable none.
 * @source routing facts 2.3
 */
export const SHARED_VARIABLES: readonly SharedVariable[] = Object.freeze([
  { env: 'OPENAI_ADMIN_KEY', path: ['plugins', 'workers', 'adminKeys', 'openai'] },
  { env: 'XAI_ADMIN_KEY', path: ['plugins', 'workers', 'adminKeys', 'xai'] },
  { env: 'ANTHROPIC_ADMIN_KEY', path: ['plugins', 'workers', 'adminKeys', 'anthropic'] },
  { env: 'GEMINI_ADMIN_KEY', path: ['plugins', 'workers', 'adminKeys', 'gemini'] },
])
