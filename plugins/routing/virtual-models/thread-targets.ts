/** The virtual models of one thread: plans of requests, and counters. */
import {
  type Metrics,
  type ModelTarget,
  type ModelTargets,
  type RelayContext,
  type TargetFailure,
  type TargetPlan,
  tenantOf,
  type WorkerEntry,
} from '#kernel'
import { chooseByWeight, shareOfKey } from './choose-target.ts'
import type { TargetConfig, VirtualModelConfig, VirtualModelsConfig } from './config.ts'

/** As the policies read it. */
export const SESSION_HEADER = 'x-weir-routing-key'

interface VirtualModel {
  readonly weighted: readonly ModelTarget[]
  readonly weights: readonly number[]
  readonly fallbacks: readonly ModelTarget[]
  readonly all: readonly ModelTarget[]
  readonly sticky: VirtualModelConfig['sticky']
}

export class ThreadTargets implements ModelTargets {
  names: readonly string[] = []
  #models: ReadonlyMap<string, VirtualModel> = new Map()
  /** A request that calls several virtual models has a plan for the last one only. */
  readonly #plans = new WeakMap<RelayContext, TargetPlan>()
  readonly #counters: ReturnType<typeof countersOf>

  constructor(config: VirtualModelsConfig, metrics: Metrics) {
    this.#counters = countersOf(metrics)
    this.configure(config)
  }

  /** Applies to requests from now on. */
  configure({ models }: VirtualModelsConfig): void {
    this.names = Object.keys(models)
    this.#models = new Map(Object.entries(models).map(([name, model]) => [name, toVirtualModel(model)]))
  }

  targetsOf(name: string): readonly ModelTarget[] | null {
    return this.#models.get(name)?.all ?? null
  }

  planOf(ctx: RelayContext, name: string): TargetPlan | null {
    const model = this.#models.get(name)
    if (model === undefined) return null
    const known = this.#plans.get(ctx)
    if (known !== undefined && known.name === name) return known
    const chosen = model.weighted[chooseByWeight(model.weights, shareOf(ctx, name, model.sticky))]
    const plan = { name, targets: [chosen, ...model.fallbacks], start: 0 }
    this.#plans.set(ctx, plan)
    return plan
  }

  entered({ name, targets }: TargetPlan, index: number, failed: TargetFailure | null): void {
    this.#counters.calls.labels(name, targets[index].model).inc()
    if (failed !== null) this.#counters.fallbacks.labels(name, targets[index - 1].model, failed).inc()
  }
}

function countersOf(metrics: Metrics) {
  return {
    calls: metrics.counter({
      name: 'weir_virtual_model_calls_total',
      help: 'Calls to targets of virtual models.',
      labels: ['virtual_model', 'target'],
    }),
    fallbacks: metrics.counter({
      name: 'weir_virtual_model_fallbacks_total',
      help: 'Targets given up for the next one, by reason: no_worker, failure or status.',
      labels: ['virtual_model', 'target', 'reason'],
    }),
  }
}

function toVirtualModel({ targets, fallbacks, sticky }: VirtualModelConfig): VirtualModel {
  const weighted = targets.map(toTarget)
  const others = fallbacks.map(toTarget)
  const weights = targets.map(({ weight }) => weight)
  return { weighted, weights, fallbacks: others, all: [...weighted, ...others], sticky }
}

function toTarget({ model, provider, labels, parameters }: TargetConfig): ModelTarget {
  const wanted = Object.entries(labels)
  const isAnyWorker = provider === undefined && wanted.length === 0
  const accepts = (worker: WorkerEntry) =>
    (provider === undefined || worker.provider === provider) &&
    wanted.every(([name, value]) => worker.labels[name] === value)
  return {
    model,
    accepts: isAnyWorker ? null : accepts,
    parameters: Object.keys(parameters).length === 0 ? null : parameters,
  }
}

/** The tenant or session decides, if the model is sticky and the request has one. */
function shareOf(ctx: RelayContext, name: string, sticky: VirtualModelConfig['sticky']): number {
  if (sticky === 'none') return Math.random()
  const key = sticky === 'tenant' ? tenantOf(ctx) : ctx.header(SESSION_HEADER)
  return key === undefined || key === '' ? Math.random() : shareOfKey(`${name}\n${key}`)
}
