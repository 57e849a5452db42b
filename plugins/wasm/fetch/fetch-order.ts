/** What a module asks to be fetched, and what it is given for it: as it crosses from a serving thread to control. */
import { defineCommand } from '#kernel'
import type { FetchedHead } from '../../../wasm-sdk/abi.ts'

/** Of the output of a call. */
export interface FetchOrder {
  readonly url: string
  readonly method: string
  /** [name, value, …] */
  readonly headers: readonly string[]
  readonly body: Uint8Array
  /** Milliseconds; null for as long as there is. */
  readonly timeoutMs: number | null
  /** Given back with the answer. */
  readonly state: string
}

export interface FetchRequest {
  /** Tells requests under way from each other, over all threads. */
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

/** Carried out on control: connections of modules hold up no thread that serves. Never rejects. */
export const FetchForModule = defineCommand<FetchRequest, FetchResult>('wasm.fetch')
/** Nobody waits for it any more. */
export const DropFetch = defineCommand<string, void>('wasm.drop-fetch')

const NO_BODY = new Uint8Array(0)

export function failedFetch(error: NonNullable<FetchedHead['error']>): FetchResult {
  return { head: { error, status: 0, headers: [], body_bytes: 0 }, body: NO_BODY }
}
