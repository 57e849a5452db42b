/** The policy contract: given the available workers of one tier, which one takes this request. */
import type { WorkerEntry } from './worker.ts'

/**
 * The available workers that a policy may choose from: all ready, all of one priority tier, in order of
 * registration. The view is reused between picks: read it during `pick`, keep nothing.
 */
export interface CandidateView {
  readonly length: number
  /** The worker at a position, 0-based. */
  worker(index: number): WorkerEntry
  /** Requests in flight to that worker, over all threads. */
  inFlight(index: number): number
}

/** What a policy may know about the request. */
export interface PickRequest {
  /** Canonical model id; `unknown` when the request named none. */
  readonly model: string
  /** Body as received; only policies that set `needsBody` may look at it. */
  readonly body: Buffer | null
  /** A declared request header, lower-case name; undefined when absent. */
  header(name: string): string | undefined
}

export interface Policy {
  /** Wire name, such as `round_robin`. */
  readonly name: string
  /** True when `pick` reads the request body. */
  readonly needsBody: boolean
  /** @returns a position in the view, or -1 for none. Called only with length >= 1. Must be synchronous. */
  pick(candidates: CandidateView, request: PickRequest): number
  /** A worker left; drop what is kept about it. */
  onWorkerRemoved?(slot: number): void
}

/** Makes one instance; each model has its own, so that counters are not shared between models. */
export type PolicyFactory = () => Policy
