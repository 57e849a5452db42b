/** A module at OnPick chooses the target of a virtual model, on the data thread and within `inline.fuel`. @hot */
import type { Host, ModelTarget, RequestContext, TargetChooser } from '#kernel'
import { moduleForModel } from '../hooks/matcher.ts'
import { NO_CHOICE, readChoice } from '../instances/guest-output.ts'
import { PickInput } from './pick-input.ts'
import type { WasmPolicyParts } from './wasm-policy.ts'

export class ModuleTargetChooser implements TargetChooser {
  readonly #parts: Omit<WasmPolicyParts, 'otherwise'>
  readonly #balance: Host['balance']
  readonly #input: PickInput

  constructor(parts: Omit<WasmPolicyParts, 'otherwise'>, balance: Host['balance']) {
    this.#parts = parts
    this.#balance = balance
    this.#input = new PickInput(parts.limits)
  }

  choose(ctx: RequestContext, name: string, targets: readonly ModelTarget[]): number {
    const { modules, inline, statistics } = this.#parts
    const module = moduleForModel(modules(), name)
    if (module === null) return NO_CHOICE
    if (statistics.isSuspended(module)) {
      statistics.skip(module, 'suspended')
      return NO_CHOICE
    }
    const request = { model: name, body: ctx.bodyBytes, header: (header: string) => ctx.header(header) }
    const frame = this.#input.writeTargets(targets, request, (target) => this.#inFlight(target), module.needs)
    const call = inline.pick(module, frame, (output) => readChoice(output, targets.length))
    if (call === null) return NO_CHOICE
    const choice = call.value ?? NO_CHOICE
    const facts = { module, point: 'OnPick' as const, requestId: ctx.requestId }
    statistics.called(facts, call.report, choice === NO_CHOICE ? 'continue' : 'pick')
    return choice
  }

  #inFlight({ model, accepts }: ModelTarget): number {
    const balance = this.#balance
    let sum = 0
    for (const worker of balance.workersOf(balance.canonicalModel(model)))
      if (accepts === null || accepts(worker))
        sum += balance.inFlight(worker.slot) + balance.inFlightElsewhere(worker.slot)
    return sum
  }
}
