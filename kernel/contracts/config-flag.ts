/** Settings that a command-line flag or an environment variable can set. */

/** One setting, of the kernel's table or of a plugin's manifest. */
export interface ConfigFlag {
  /** Long flag without the dashes; absent if there is only a variable. */
  readonly flag?: string
  /** Environment variable; absent if there is only a flag. */
  readonly env?: string
  /** Path of the setting in the file; for a plugin, below `plugins` and its name. */
  readonly path: readonly string[]
  /** Further paths that get the value. */
  readonly also?: readonly (readonly string[])[]
  /**
   * `list` is repeatable as a flag and comma-separated in the environment; `switch` also has a `--no-` form;
   * `constant` takes no value and sets `constant`.
   */
  readonly kind: 'text' | 'integer' | 'number' | 'list' | 'switch' | 'constant'
  readonly constant?: string | boolean
  /** Name of the value in help texts. */
  readonly placeholder?: string
  readonly help: string
  /** Hidden in `weir config show`. */
  readonly isSecret?: boolean
  /** The variable does not enable the plugin, because other programs use it too. Default: a value enables its plugin. */
  readonly enablesNothing?: boolean
}
