/** Parts of the gateway's responses about workers that the command reads. */
export interface WorkerRecord {
  readonly id: string
  readonly url: string
  /** URL of the engine, of which this worker is one data-parallel rank. */
  readonly dp_base_url?: string
  readonly status: string
  readonly models?: readonly { readonly id: string }[]
  readonly worker_type: string
  readonly runtime_type: string
  readonly priority: number
  /** Requests in flight. */
  readonly load: number
  readonly job_status?: { readonly status: string; readonly message: string | null }
}

export interface WorkerListing {
  readonly workers: readonly WorkerRecord[]
  readonly total: number
}

/** Response of POST; the registration continues in the background. */
export interface Accepted {
  readonly worker_id: string
  readonly url: string
}
