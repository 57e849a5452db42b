/** Fetches of modules as sent from a data thread to control, and their results. */
import { defineCommand } from '#kernel'
import type { FetchedHead } from '../../../wasm-sdk/abi.ts'

/** Of the output of a call. */
export interface FetchOrder {
  readonly url: string
  readonly method: string
  /** [name, value, …] */
  readonly headers: readonly string[]
  readonly body: Uint8Array
  /** Milliseconds; null for the time that is left. */
  readonly timeoutMs: number | null
  /** Passed to the next call of the module with the result. */
  readonly state: string
}

export interface FetchRequest {
  /** Unique among the pending fetches of all threads. */
  readonly key: string
  /** UUID of the module. */
  readonly module: string
  /** Origins that the module was registered for. */
  readonly allowedHosts: readonly string[]
  readonly order: Omit<FetchOrder, 'state' | 'timeoutMs'>
  /** Milliseconds */
  readonly timeoutMs: number
}

export interface FetchResult {
  readonly head: FetchedHead
  readonly body: Uint8Array
}

/** Runs on control: connections of modules do not block data threads. Never rejects. */
export const FetchForModule = defineCommand<FetchRequest, FetchResult>('wasm.fetch')
/** Cancels a pending fetch. */
export const DropFetch = defineCommand<string, void>('wasm.drop-fetch')

const NO_BODY = new Uint8Array(0)

export function failedFetch(error: NonNullable<FetchedHead['error']>): FetchResult {
  return { head: { error, status: 0, headers: [], body_bytes: 0 }, body: NO_BODY }
}
