/** What the page reads of the module routes; see the HTTP API reference. */
export interface Module {
  readonly module_uuid: string
  readonly module_meta: {
    readonly name: string
    readonly file_path: string
    readonly sha256_hash: string
    readonly size_bytes: number
    readonly created_at: string
    readonly access_count: number
    readonly attach_points: readonly { readonly Middleware: string }[]
  }
  readonly module_state: {
    readonly failed_executions: number
    readonly suspended_until: string | null
    /** Of all calls. */
    readonly cpu_ms: number
    readonly fuel_total: number
    /** Of one call. */
    readonly fuel_max: number
    readonly placement: string
    readonly instance: string
    readonly on_failure: string
    readonly trial: 'canary' | null
    /** UUID of the current version. */
    readonly trial_of: string | null
    readonly versions: readonly {
      readonly module_uuid: string
      readonly file_path: string
      readonly sha256_hash: string
      readonly size_bytes: number
      readonly created_at: string
    }[]
  }
}

export interface ModuleList {
  readonly modules: readonly Module[]
  readonly not_loaded?: readonly {
    readonly module_uuid: string
    readonly name: string | null
    readonly reason: string
  }[]
}

export interface LogLine {
  readonly time: string
  readonly level: string
  readonly text: string
  readonly request_id: string
  readonly thread: number
}

/** Latest first. */
export interface ModuleLog {
  readonly lines: readonly LogLine[]
}
