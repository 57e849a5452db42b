/** Settings that the command line and the environment can set: one row, two ways in, one path. */

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
