/** Reloads of the configuration: their results and their preview. */

export interface ReloadReport {
  /** Paths of changed settings that are applied, such as `plugins.auth.apiKey`. */
  readonly applied: readonly string[]
  /** Paths of changed settings that need a restart. */
  readonly needsRestart: readonly string[]
}

/** One effective value. */
export interface ShownValue {
  /** Such as `kernel.port`. */
  readonly path: string
  /** Secrets are masked. */
  readonly value: unknown
  readonly source: 'file' | 'flag' | 'environment' | 'default'
}

/** The running configuration, for display. */
export interface ShownConfig {
  /** Absolute path; null without a file. */
  readonly file: string | null
  readonly values: readonly ShownValue[]
}

/** What a reload would do. */
export interface ReloadPlan extends ReloadReport {
  /** What plugins would do with the new settings, such as draining a worker; one line each. */
  readonly effects: readonly string[]
  /** The file that a reload reads; null without one. */
  readonly file: string | null
  /** True if the planned configuration is the content of that file. */
  readonly isInstalled: boolean
}
