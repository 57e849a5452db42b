/** What the page reads of the debug routes; see the HTTP API reference. Times are milliseconds. */
export interface Candidate {
  readonly worker_id: string
  readonly url: string
  readonly in_flight: number
  readonly breaker: string
  readonly is_available: boolean
  readonly is_suspect: boolean
  readonly load_score: number
}

export interface Attempt {
  /** 1-based. */
  readonly number: number
  readonly worker_id: string
  readonly worker_url: string
  readonly policy: string
  readonly explanation: string | null
  readonly candidates: readonly Candidate[] | null
  /** From the arrival of the request. */
  readonly start_ms: number
  /** From the start of the attempt. */
  readonly first_byte_ms: number | null
  readonly duration_ms: number
  readonly status: number | null
  readonly failure: string | null
  readonly error: string | null
  readonly outcome: string
}

export interface Step {
  readonly kind: 'queue' | 'module' | 'tool'
  readonly name: string
  /** From the arrival of the request. */
  readonly start_ms: number
  /** Of all calls. */
  readonly duration_ms: number
  readonly calls: number
  readonly error: string | null
}

export interface PastRequest {
  readonly request_id: string
  readonly method: string
  readonly path: string
  readonly tenant: string
  readonly model: string | null
  readonly status: number
  readonly error_code: string | null
  readonly is_aborted: boolean
  readonly started_at: string
  readonly first_byte_ms: number | null
  readonly duration_ms: number
  readonly bytes_out: number
  readonly modules: readonly string[]
  readonly thread: number
  readonly attempts: readonly Attempt[]
  readonly steps: readonly Step[]
}

export interface RequestPage {
  readonly requests: readonly PastRequest[]
  readonly has_more: boolean
  readonly last_id: string | null
}
