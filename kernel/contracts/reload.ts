/** What a reload of the configuration came to. */
export interface ReloadReport {
  /** Paths of settings that changed and hold now, such as `plugins.auth.apiKey`. */
  readonly applied: readonly string[]
  /** Paths of settings that changed in the file and hold after a restart only. */
  readonly needsRestart: readonly string[]
}
