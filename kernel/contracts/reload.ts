/** Reloads of the configuration: their results, their preview, and the configurations applied before. */

export interface ReloadReport {
  /** Paths of changed settings that are applied, such as `plugins.auth.apiKey`. */
  readonly applied: readonly string[]
  /** Paths of changed settings that need a restart. */
  readonly needsRestart: readonly string[]
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

/** Copy of a configuration that was applied. */
export interface SavedConfig {
  /** Absolute path of the copy. */
  readonly path: string
  /** Milliseconds since the epoch. */
  readonly appliedAtMs: number
  /** True if it equals the running configuration; later changes of the file do not count. */
  readonly isRunning: boolean
}

export interface ConfigHistory {
  /** The file that a reload reads; null without one. */
  readonly file: string | null
  /** Newest first. */
  readonly saved: readonly SavedConfig[]
}
