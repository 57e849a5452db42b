/** The table of settings that the command line and the environment can set: one row, two ways in, one path. */

/** A row, of the kernel's table or of a plugin's manifest. */
export interface ConfigFlag {
  /** Long flag without the dashes; null when only the variable exists. */
  readonly flag: string | null
  /** Environment variable, or null when only the flag exists. */
  readonly env: string | null
  /** Where the value goes, as in the file; of a plugin's row, below `plugins` and its name. */
  readonly path: readonly string[]
  /** Where else it goes. */
  readonly also?: readonly (readonly string[])[]
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
  /** The variable may be there for other programs: it sets what an enabled plugin has. Default: a value enables its plugin. */
  readonly enablesNothing?: boolean
}

/** The kernel's own. Precedence: flag, then environment, then file, then default. @source routing facts 5.8, 5.1 for the names */
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
    env: null,
    path: ['kernel', 'prefillPolicy'],
    kind: 'text',
    placeholder: 'name',
    help: 'policy of prefill workers (default: as --policy)',
  },
  {
    flag: 'decode-policy',
    env: null,
    path: ['kernel', 'decodePolicy'],
    kind: 'text',
    placeholder: 'name',
    help: 'policy of decode workers (default: as --policy)',
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
