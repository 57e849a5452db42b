/** What a check of a module is told, and what it may find. */
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'

export interface ConformanceOptions {
  /** Where the module is to be attached. Default: wherever it has an export for. */
  readonly attachPoints?: readonly AttachPoint[]
  /** Memory that the gateway allows. Default 64 MiB. */
  readonly maxMemoryBytes?: number
  /** Time that a call may take. Default 5000 ms. */
  readonly deadlineMs?: number
  /** The module will be registered with `wasi: true`. Default false. */
  readonly usesWasi?: boolean
  /** Settings that the module needs to run at all. */
  readonly config?: Readonly<Record<string, string>>
}

export interface Finding {
  /** A problem makes the gateway refuse the module or its calls fail; a warning is for the author to judge. */
  readonly level: 'problem' | 'warning'
  readonly code: string
  readonly message: string
  /** What to do about it. */
  readonly next: string
}
