/**
 * Makes any policy sticky for requests with a routing key: those are picked by the `manual` policy.
 * @hot
 */
import type { CandidateView, PickRequest, Policy } from '#kernel'
import { routingKey } from './sessions/routing-headers.ts'

/** Has the name of the inner policy, which metrics use as a label. */
export class StickyOverlay implements Policy {
  readonly name: string
  readonly needsBody: boolean
  private readonly inner: Policy
  private readonly manual: Policy
  /** The policy that made the last pick. */
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
