/** Modules at OnPick pick workers and the targets of virtual models, on the data thread and within `inline.fuel`. @hot */
import type {
  CandidateView,
  Host,
  ModelTarget,
  PickRequest,
  Policy,
  RequestContext,
  TargetChooser,
} from '#kernel'
import { moduleForModel } from '../hooks/active-modules.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import type { InlineGuests } from '../threads/inline-guests.ts'
import { PickInput, type PickLimits } from './pick-input.ts'
import { NO_CHOICE, readChoice } from './pick-output.ts'

export const WASM_POLICY = 'wasm'

export interface PickParts {
  /** Modules registered now for OnPick, by priority. */
  modules(): readonly LoadedModule[]
  readonly inline: Pick<InlineGuests, 'pick'>
  readonly statistics: Pick<CallStatistics, 'called' | 'isSuspended' | 'skip'>
  readonly limits: PickLimits
}

interface PolicyParts extends PickParts {
  /** The default policy. */
  readonly otherwise: Policy
}

/** The module for a model; null if there is none, or it is suspended. */
function pickerFor({ modules, statistics }: PickParts, model: string): LoadedModule | null {
  const module = moduleForModel(modules(), model)
  if (module === null || !statistics.isSuspended(module)) return module
  statistics.skip(module, 'suspended')
  return null
}

/** @returns index of one of the candidates of the frame, or NO_CHOICE */
function choiceOf(
  { inline, statistics }: PickParts,
  module: LoadedModule,
  frame: Buffer,
  candidates: number,
  requestId: string,
): number {
  const call = inline.pick(module, frame, (output) => readChoice(output, candidates))
  if (call === null) return NO_CHOICE
  const choice = call.value ?? NO_CHOICE
  const facts = { module, point: 'OnPick' as const, requestId }
  statistics.called(facts, call.report, choice === NO_CHOICE ? 'continue' : 'pick')
  return choice
}

/** The default policy picks if there is no module, or if the module makes no choice or fails. */
export class WasmPolicy implements Policy {
  readonly name = WASM_POLICY
  readonly #parts: PolicyParts
  readonly #input: PickInput
  /** First candidate of the next input, if not all fit into one. */
  #start = 0
  /** Explanation of the last pick. */
  #reason = ''

  constructor(parts: PolicyParts) {
    this.#parts = parts
    this.#input = new PickInput(parts.limits)
  }

  get needsBody(): boolean {
    const { modules, otherwise } = this.#parts
    return otherwise.needsBody || modules().some(({ needs }) => needs.request_body)
  }

  pick(candidates: CandidateView, request: PickRequest): number {
    const module = pickerFor(this.#parts, request.model)
    const choice = module === null ? NO_CHOICE : this.#choose(module, candidates, request)
    if (choice !== NO_CHOICE) return choice
    this.#reason = ''
    return this.#parts.otherwise.pick(candidates, request)
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
    const shown = this.#input.shownOf(candidates)
    const isAll = shown === candidates.length
    const start = isAll || this.#start >= candidates.length ? 0 : this.#start
    if (!isAll) this.#start = start + shown
    const frame = this.#input.write(candidates, request, start, module.needs)
    const choice = choiceOf(this.#parts, module, frame, shown, '')
    if (choice === NO_CHOICE) return NO_CHOICE
    this.#reason = `module ${module.name} chose ${choice} of ${shown}`
    return (start + choice) % candidates.length
  }
}

export class ModuleTargetChooser implements TargetChooser {
  readonly #parts: PickParts
  readonly #balance: Host['balance']
  readonly #input: PickInput

  constructor(parts: PickParts, balance: Host['balance']) {
    this.#parts = parts
    this.#balance = balance
    this.#input = new PickInput(parts.limits)
  }

  choose(ctx: RequestContext, name: string, targets: readonly ModelTarget[]): number {
    const module = pickerFor(this.#parts, name)
    if (module === null) return NO_CHOICE
    const request = { model: name, body: ctx.bodyBytes, header: (header: string) => ctx.header(header) }
    const frame = this.#input.writeTargets(targets, request, (target) => this.#inFlight(target), module.needs)
    return choiceOf(this.#parts, module, frame, targets.length, ctx.requestId)
  }

  #inFlight({ model, accepts }: ModelTarget): number {
    const balance = this.#balance
    let sum = 0
    for (const worker of balance.workersOf(model))
      if (accepts === null || accepts(worker))
        sum += balance.inFlight(worker.slot) + balance.inFlightElsewhere(worker.slot)
    return sum
  }
}
