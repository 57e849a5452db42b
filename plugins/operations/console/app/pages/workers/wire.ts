/** What the page reads of the worker routes; see the HTTP API reference. */
export type WorkerStatus = 'pending' | 'ready' | 'not_ready' | 'failed' | 'draining' | 'drained'

export interface Worker {
  readonly id: string
  readonly url: string
  readonly model_id?: string
  readonly models?: readonly { readonly id: string; readonly context_length?: number | null }[]
  readonly worker_type: string
  readonly connection_mode: string
  readonly runtime_type: string
  readonly apis?: readonly string[]
  readonly priority: number
  readonly cost: number
  readonly drained?: true
  readonly labels?: Readonly<Record<string, string>>
  readonly status: WorkerStatus
  /** Requests of this gateway that are in flight. */
  readonly load: number
  readonly breaker?: 'closed' | 'open' | 'half_open'
  readonly traffic?: {
    readonly requests: number
    readonly failures: { readonly answered: number; readonly silent: number; readonly unreachable: number }
    /** 0 to 1. */
    readonly failure_share: number
    readonly is_stalled: boolean
    readonly duration_ms: number | null
    readonly ttft_ms: number | null
    readonly last_error: string | null
    /** Unix seconds. */
    readonly last_error_at: number | null
  }
  readonly job_status?: { readonly status: string; readonly message: string | null }
  /** Why the last health probe failed. */
  readonly status_reason?: string
  readonly warnings?: readonly string[]
  /** Latest report of the engine. */
  readonly engine?: {
    readonly running: number | null
    readonly waiting: number | null
    /** 0 to 1. */
    readonly kv_usage: number | null
    readonly cache_hit_rate: number | null
  }
}

export interface WorkerList {
  readonly workers: readonly Worker[]
  readonly total: number
  readonly stats: {
    readonly by_status: Readonly<Record<string, number>>
    readonly models: readonly ModelWorkers[]
  }
  readonly has_more: boolean
  readonly last_id: string | null
}

export interface ModelWorkers {
  /** Null for workers that serve any model. */
  readonly model: string | null
  readonly by_status: Readonly<Record<string, number>>
}
