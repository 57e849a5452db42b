/** The kernel's rows of the table of settings that the command line and the environment can set. */
import type { ConfigFlag } from '#kernel'

/** The kernel's own. Precedence: flag, then environment, then file, then default. */
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
    flag: 'prefill-policy',
    path: ['kernel', 'prefillPolicy'],
    kind: 'text',
    placeholder: 'name',
    help: 'policy of prefill workers (default: as --policy)',
  },
  {
    flag: 'decode-policy',
    path: ['kernel', 'decodePolicy'],
    kind: 'text',
    placeholder: 'name',
    help: 'policy of decode workers (default: as --policy)',
  },
  {
    flag: 'auth-off',
    path: ['kernel', 'auth'],
    kind: 'constant',
    constant: 'off',
    help: 'serve every route without a key',
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
    path: ['kernel', 'log', 'access'],
    kind: 'switch',
    help: 'one log line per request',
  },
  {
    flag: 'grace-ms',
    path: ['kernel', 'shutdown', 'graceMs'],
    kind: 'integer',
    placeholder: 'ms',
    help: 'time for running requests to end after a stop signal, in milliseconds',
  },
])
