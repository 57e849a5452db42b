/** Result of a reload of the configuration. */
export interface ReloadReport {
  /** Paths of changed settings that are applied, such as `plugins.auth.apiKey`. */
  readonly applied: readonly string[]
  /** Paths of changed settings that need a restart. */
  readonly needsRestart: readonly string[]
}
