/**
 * Makes any policy sticky for requests of a session: those are picked by the `manual` policy.
 * @hot
 */
import type { CandidateView, PickRequest, Policy } from '#kernel'
import type { Manual } from './manual.ts'
import type { SessionKeys } from './sessions/session-keys.ts'

/** Has the name of the inner policy, which metrics use as a label. */
export class StickyOverlay implements Policy {
  readonly name: string
  readonly needsBody: boolean
  private readonly inner: Policy
  private readonly manual: Manual
  private readonly keys: SessionKeys
  /** The policy that made the last pick. */
  private last: Policy

  constructor(inner: Policy, manual: Manual, keys: SessionKeys) {
    this.name = inner.name
    this.needsBody = inner.needsBody || keys.readsBody
    this.keys = keys
    this.inner = inner
    this.manual = manual
    this.last = inner
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const key = this.keys.of(request)
    this.last = key === '' ? this.inner : this.manual
    return key === '' ? this.inner.pick(candidates, request) : this.manual.pickFor(key, candidates, request)
  }

  onWorkerRemoved(slot: number): void {
    this.inner.onWorkerRemoved?.(slot)
  }

  close(): void {
    this.inner.close?.()
    this.manual.close()
  }

  explain(): string {
    const words = this.last.explain?.() ?? this.last.name
    return this.last === this.manual ? `sticky: ${words}` : words
  }
}
