/** The virtual models of one thread: plans of requests, and counters. */
import { hash } from 'node:crypto'
import {
  type Metrics,
  type ModelTarget,
  type ModelTargets,
  type RequestContext,
  type TargetChooser,
  type TargetFailure,
  type TargetPlan,
  tenantOf,
  type WorkerEntry,
} from '#kernel'
import type { TargetConfig, VirtualModelConfig, VirtualModelsConfig } from './config.ts'

/** As the policies read it. */
export const SESSION_HEADER = 'x-weir-routing-key'

interface VirtualModel {
  readonly name: string
  readonly weighted: readonly ModelTarget[]
  readonly weights: readonly number[]
  readonly fallbacks: readonly ModelTarget[]
  readonly all: readonly ModelTarget[]
  readonly choose: VirtualModelConfig['choose']
  readonly sticky: VirtualModelConfig['sticky']
  readonly fallsBackOnContextLength: boolean
}

export class ThreadTargets implements ModelTargets {
  names: readonly string[] = []
  #models: ReadonlyMap<string, VirtualModel> = new Map()
  /** Those whose names end in `*`, longest prefix first. */
  #prefixes: readonly (readonly [prefix: string, model: VirtualModel])[] = []
  /** A request that calls several virtual models has a plan for the last one only. */
  readonly #plans = new WeakMap<RequestContext, TargetPlan>()
  readonly #chooser: TargetChooser | null
  readonly #counters: ReturnType<typeof countersOf>

  constructor(config: VirtualModelsConfig, metrics: Metrics, chooser: TargetChooser | null) {
    this.#chooser = chooser
    this.#counters = countersOf(metrics)
    this.configure(config)
  }

  /** Applies to requests from now on. */
  configure({ models }: VirtualModelsConfig): void {
    const all = Object.entries(models).map(([name, model]) => toVirtualModel(name, model))
    const isPrefix = ({ name }: VirtualModel) => name.endsWith('*')
    const exact = all.filter((model) => !isPrefix(model))
    this.names = exact.map(({ name }) => name)
    this.#models = new Map(exact.map((model) => [model.name, model]))
    this.#prefixes = all
      .filter(isPrefix)
      .map((model) => [model.name.slice(0, -1), model] as const)
      .sort(([a], [b]) => b.length - a.length)
  }

  targetsOf(name: string): readonly ModelTarget[] | null {
    return this.#find(name)?.all ?? null
  }

  #find(named: string): VirtualModel | undefined {
    return this.#models.get(named) ?? this.#prefixes.find(([prefix]) => named.startsWith(prefix))?.[1]
  }

  planOf(ctx: RequestContext, named: string): TargetPlan | null {
    const model = this.#find(named)
    if (model === undefined) return null
    const { name, fallsBackOnContextLength } = model
    const known = this.#plans.get(ctx)
    if (known !== undefined && known.name === name) return known
    const chosen = model.weighted[this.#choose(ctx, model)]
    const plan = { name, targets: [chosen, ...model.fallbacks], start: 0, fallsBackOnContextLength }
    this.#plans.set(ctx, plan)
    return plan
  }

  #choose(ctx: RequestContext, { name, weighted, weights, choose, sticky }: VirtualModel): number {
    const choice = choose === 'module' ? (this.#chooser?.choose(ctx, name, weighted) ?? -1) : -1
    return choice >= 0 ? choice : chooseByWeight(weights, shareOf(ctx, name, sticky))
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
      help: 'Targets given up for the next one, by reason: no_worker, failure, status or context_length.',
      labels: ['virtual_model', 'target', 'reason'],
    }),
  }
}

function toVirtualModel(
  name: string,
  { targets, fallbacks, fallbackOn, choose, sticky }: VirtualModelConfig,
): VirtualModel {
  const weighted = targets.map((target) => toTarget(target, target.weight))
  const others = fallbacks.map((target) => toTarget(target, 0))
  const weights = targets.map(({ weight }) => weight)
  return {
    name,
    weighted,
    weights,
    fallbacks: others,
    all: [...weighted, ...others],
    choose,
    sticky,
    fallsBackOnContextLength: fallbackOn.includes('context_length'),
  }
}

function toTarget({ model, provider, labels, parameters }: TargetConfig, weight: number): ModelTarget {
  const wanted = Object.entries(labels)
  const isAnyWorker = provider === undefined && wanted.length === 0
  const accepts = (worker: WorkerEntry) =>
    (provider === undefined || worker.provider === provider) &&
    wanted.every(([name, value]) => worker.labels[name] === value)
  return {
    model,
    weight,
    labels,
    accepts: isAnyWorker ? null : accepts,
    parameters: Object.keys(parameters).length === 0 ? null : parameters,
  }
}

/** The tenant or session decides, if the model is sticky and the request has one. */
function shareOf(ctx: RequestContext, name: string, sticky: VirtualModelConfig['sticky']): number {
  if (sticky === 'none') return Math.random()
  const key = sticky === 'tenant' ? tenantOf(ctx) : ctx.header(SESSION_HEADER)
  return key === undefined || key === '' ? Math.random() : shareOfKey(`${name}\n${key}`)
}

/**
 * Chooses a target by weight.
 * @param weights of which one is above 0
 * @param share 0 up to but not including 1
 * @returns a position in the list
 */
export function chooseByWeight(weights: readonly number[], share: number): number {
  let rest = share * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [index, weight] of weights.entries()) {
    if (rest < weight) return index
    rest -= weight
  }
  return weights.findLastIndex((weight) => weight > 0)
}

/** The same number for the same key on every thread and instance, uniform from 0 up to but not including 1. */
export function shareOfKey(key: string): number {
  return Number.parseInt(hash('sha256', key, 'hex').slice(0, 12), 16) / 2 ** 48
}
