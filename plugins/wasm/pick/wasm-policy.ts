/**
 * wasm: a module at OnPick picks the worker, on the data thread and within `inline.fuel`. The default policy picks if there
 * is no module, or if the module makes no choice or fails. @hot
 */
import type { CandidateView, PickRequest, Policy } from '#kernel'
import { moduleForModel } from '../hooks/matcher.ts'
import { NO_CHOICE, readChoice } from '../instances/guest-output.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import type { InlineGuests } from '../threads/inline-guests.ts'
import { PickInput, type PickLimits } from './pick-input.ts'

export const WASM_POLICY = 'wasm'

export interface WasmPolicyParts {
  /** Modules registered now for OnPick, by priority. */
  modules(): readonly LoadedModule[]
  readonly inline: Pick<InlineGuests, 'pick'>
  readonly statistics: Pick<CallStatistics, 'called' | 'isSuspended' | 'skip'>
  /** The default policy. */
  readonly otherwise: Policy
  readonly limits: PickLimits
}

export class WasmPolicy implements Policy {
  readonly name = WASM_POLICY
  readonly #parts: WasmPolicyParts
  readonly #input: PickInput
  /** First candidate of the next input, if not all fit into one. */
  #start = 0
  /** Explanation of the last pick. */
  #reason = ''

  constructor(parts: WasmPolicyParts) {
    this.#parts = parts
    this.#input = new PickInput(parts.limits)
  }

  get needsBody(): boolean {
    const { modules, otherwise } = this.#parts
    return otherwise.needsBody || modules().some(({ needs }) => needs.request_body)
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const { modules, statistics, otherwise } = this.#parts
    const module = moduleForModel(modules(), request.model)
    if (module !== null && !statistics.isSuspended(module)) {
      const choice = this.#choose(module, candidates, request)
      if (choice !== NO_CHOICE) return choice
    } else if (module !== null) statistics.skip(module, 'suspended')
    this.#reason = ''
    return otherwise.pick(candidates, request)
  }

  explain(): string {
    return this.#reason === '' ? `default ${this.#parts.otherwise.explain?.() ?? ''}`.trimEnd() : this.#reason
  }

  onWorkerRemoved(slot: number): void {
    this.#input.forget(slot)
    this.#parts.otherwise.onWorkerRemoved?.(slot)
  }

  close(): void {
    this.#parts.otherwise.close?.()
  }

  #choose(module: LoadedModule, candidates: CandidateView, request: PickRequest): number {
    const { inline, statistics } = this.#parts
    const shown = this.#input.shownOf(candidates)
    const isAll = shown === candidates.length
    const start = isAll || this.#start >= candidates.length ? 0 : this.#start
    if (!isAll) this.#start = start + shown
    const frame = this.#input.write(candidates, request, start, module.needs)
    const call = inline.pick(module, frame, (output) => readChoice(output, shown))
    if (call === null) return NO_CHOICE
    const choice = call.value ?? NO_CHOICE
    const facts = { module, point: 'OnPick' as const, requestId: '' }
    statistics.called(facts, call.report, choice === NO_CHOICE ? 'continue' : 'pick')
    if (choice === NO_CHOICE) return NO_CHOICE
    this.#reason = `module ${module.name} chose ${choice} of ${shown}`
    return (start + choice) % candidates.length
  }
}
