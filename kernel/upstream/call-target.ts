/** The position of one call in the targets of a virtual model. */
import { UNKNOWN_MODEL } from '../balance/compiled-table.ts'
import type { Call } from '../contracts/call.ts'
import type { ModelParameters, ModelTarget, TargetFailure, TargetPlan } from '../contracts/model-targets.ts'
import type { CallParts } from './call-parts.ts'

/** Created only for virtual models. */
export class CallTarget {
  readonly plan: TargetPlan
  readonly #call: Call
  readonly #parts: CallParts
  #index: number
  /** Why the current target is given up; null while it is used. */
  #failed: TargetFailure | null = null
  /** Filter of the call and of the target. */
  accepts: Call['accepts']

  private constructor(plan: TargetPlan, call: Call, parts: CallParts) {
    this.plan = plan
    this.#call = call
    this.#parts = parts
    this.#index = plan.start
    this.accepts = this.#filter()
  }

  /** @returns null if the call does not name a virtual model */
  static of(call: Call, parts: CallParts): CallTarget | null {
    if (parts.targets === null || call.model === null || call.worker !== null) return null
    const plan = parts.targets.planOf(call.ctx, call.model)
    if (plan === null) return null
    parts.targets.entered(plan, plan.start, null)
    return new CallTarget(plan, call, parts)
  }

  /** Canonical model of a call without a plan; of one at a fixed worker, the model of the target that it serves. */
  static modelOf({ model, worker }: Call, { balance, targets }: CallParts): string {
    const all = targets === null || model === null || worker === null ? null : targets.targetsOf(model)
    const ofWorker = all?.find((target) => {
      const workers = balance.workersOf(target.model)
      return workers.some(({ slot }) => slot === worker?.slot)
    })
    return balance.canonicalModel(ofWorker?.model ?? model ?? UNKNOWN_MODEL)
  }

  get #target(): ModelTarget {
    return this.plan.targets[this.#index]
  }

  /** Canonical. */
  get model(): string {
    return this.#parts.balance.canonicalModel(this.#target.model)
  }

  get parameters(): ModelParameters | null {
    return this.#target.parameters
  }

  get isGivenUp(): boolean {
    return this.#failed !== null
  }

  /** Whether the current target is given up if the prompt is too long for it. */
  get mayTryLongerContext(): boolean {
    return this.plan.fallsBackOnContextLength && this.#hasNext
  }

  /** Whether it is given up because the prompt is too long for it. */
  get isContextTooShort(): boolean {
    return this.#failed === 'context_length'
  }

  get #hasNext(): boolean {
    return this.#index + 1 < this.plan.targets.length
  }

  /** @returns false if there is no further target */
  giveUp(failed: TargetFailure): boolean {
    if (!this.#hasNext) return false
    this.#failed = failed
    return true
  }

  /** Moves to the next target after `giveUp`. */
  advance(): void {
    const { plan } = this
    this.#index++
    if (plan.start < this.#index) plan.start = this.#index
    this.#parts.targets?.entered(plan, this.#index, this.#failed)
    this.#failed = null
    this.accepts = this.#filter()
  }

  #filter(): Call['accepts'] {
    const { accepts: own } = this.#call
    const { accepts } = this.#target
    if (own === null || accepts === null) return own ?? accepts
    return (worker) => accepts(worker) && own(worker)
  }
}
