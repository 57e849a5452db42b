/**
 * Makes any policy sticky for requests that carry a routing key: those go where the `manual` policy remembers.
 * @hot
 */
import type { CandidateView, PickRequest, Policy } from '#kernel'
import { routingKey } from './routing-key.ts'

/** Carries the name of the policy underneath, so that metrics keep counting under it. */
export class StickyOverlay implements Policy {
  readonly name: string
  readonly needsBody: boolean
  private readonly inner: Policy
  private readonly manual: Policy
  /** The one of both that chose last. */
  private last: Policy

  constructor(inner: Policy, manual: Policy) {
    this.name = inner.name
    this.needsBody = inner.needsBody
    this.inner = inner
    this.manual = manual
    this.last = inner
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    this.last = routingKey(request) !== '' ? this.manual : this.inner
    return this.last.pick(candidates, request)
  }

  onWorkerRemoved(slot: number): void {
    this.inner.onWorkerRemoved?.(slot)
    this.manual.onWorkerRemoved?.(slot)
  }

  close(): void {
    this.inner.close?.()
    this.manual.close?.()
  }

  explain(): string {
    const words = this.last.explain?.() ?? this.last.name
    return this.last === this.manual ? `sticky: ${words}` : words
  }
}
