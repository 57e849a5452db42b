/** Compiles the published worker table for picks: the workers of each model and leg in tiers. Runs once per publication. */
import type { PickLeg } from '../contracts/policy.ts'
import type { WorkerEntry, WorkerTable, WorkerType } from '../contracts/worker.ts'

/** Model id of requests without a model; any worker may serve them. */
export const UNKNOWN_MODEL = 'unknown'

/** Key of the route of models that only wildcard workers serve; model ids are never empty. */
const WILDCARD_KEY = ''

export const LEGS: readonly PickLeg[] = ['whole', 'prefill', 'decode']

/** Prefill and decode workers serve half a request, so they get no whole ones. */
export const WORKER_TYPE_OF_LEG: Readonly<Record<PickLeg, WorkerType>> = Object.freeze({
  whole: 'regular',
  prefill: 'prefill',
  decode: 'decode',
})

/** Workers of one priority, in order of registration. */
export interface Tier {
  readonly priority: number
  readonly workers: readonly WorkerEntry[]
  /** The workers' slots, at the same positions. */
  readonly slots: Int32Array
  readonly hasEqualCosts: boolean
  /** Cached availability, maintained by `breakers.ts`. */
  readonly found: Availability
}

/** The available workers of a tier: the first `length` entries of both lists. */
export interface Availability {
  length: number
  /** Positions in the tier, ascending. */
  readonly positions: Int32Array
  /** Their slots, at the same places. */
  readonly slots: Int32Array
  /** Slot → index; valid for the slots of these workers while `isIndexed`. */
  indexes: Int32Array | null
  isIndexed: boolean
  /** Version of all statuses and breakers that it was computed from. */
  stamp: number
  /** False if it may change with time. */
  isSettled: boolean
  /** True if one of the workers may be an outlier, see `outliers.ts`. */
  hasSuspects: boolean
}

export function openAvailability(size: number): Availability {
  return {
    length: 0,
    positions: new Int32Array(size),
    slots: new Int32Array(size),
    indexes: null,
    isIndexed: false,
    stamp: 0,
    isSettled: false,
    hasSuspects: false,
  }
}

/** Workers that may serve requests for one model, or one leg of them. */
export interface ModelRoute {
  /**
   * Key of the policy instance: the model's id. Models that no worker lists share the instance of the wildcard workers,
   * because clients can send any number of such names.
   */
  readonly key: string
  readonly leg: PickLeg
  /** The first worker, whose `policy` label applies to the model; null if labels do not apply. */
  readonly first: WorkerEntry | null
  /** Best first: those that list the model by priority, then wildcard workers by priority. */
  readonly tiers: readonly Tier[]
  /** Number of workers that list the model, or of wildcard workers if none lists it. */
  readonly holderCount: number
}

/** False for the route of models that only wildcard workers serve. */
export function isListed(route: ModelRoute): boolean {
  return route.key !== WILDCARD_KEY
}

type LegRoutes = ReadonlyMap<string, ModelRoute>

/** What the table knows of the name of a model, found by one lookup. */
export interface ModelPlan extends Readonly<Record<PickLeg, ModelRoute | null>> {
  /** Canonical id; empty for names that no worker lists. */
  readonly model: string
  /** API formats that every worker accepts that may get a request; null if no worker may get one. */
  readonly apis: ReadonlySet<string> | null
  /** Whole workers and legs of pairs. */
  readonly workers: readonly WorkerEntry[]
}

/** One published table, ready for picking. Immutable. */
export class CompiledTable {
  /** All registered workers in order of registration. */
  readonly workers: readonly WorkerEntry[]
  readonly byId: ReadonlyMap<string, WorkerEntry>
  readonly bySlot: ReadonlyMap<number, WorkerEntry>
  readonly largestTier: number
  /** True if there are prefill and decode workers. */
  readonly hasPairs: boolean
  readonly #routes: Readonly<Record<PickLeg, LegRoutes>>
  /** By model id and alias. */
  readonly #plans: ReadonlyMap<string, ModelPlan>
  /** Of names that no worker lists. */
  readonly #unlisted: ModelPlan

  constructor(table: WorkerTable) {
    this.workers = table.workers
    this.byId = new Map(table.workers.map((worker) => [worker.id, worker]))
    this.bySlot = new Map(table.workers.map((worker) => [worker.slot, worker]))
    this.#routes = {
      whole: makeRoutes(table.workers, 'whole'),
      prefill: makeRoutes(table.workers, 'prefill'),
      decode: makeRoutes(table.workers, 'decode'),
    }
    this.hasPairs = this.#routes.prefill.size > 0 && this.#routes.decode.size > 0
    this.largestTier = Math.max(...Object.values(this.#routes).map(largestTier))
    const names = mapNames(table.workers)
    this.#plans = new Map([...names].map(([name, model]) => [name, this.#toPlan(model)]))
    this.#unlisted = this.#toPlan(WILDCARD_KEY)
  }

  #toPlan(model: string): ModelPlan {
    const routeOf = (leg: PickLeg) =>
      this.#routes[leg].get(model) ?? this.#routes[leg].get(WILDCARD_KEY) ?? null
    const routes = { whole: routeOf('whole'), prefill: routeOf('prefill'), decode: routeOf('decode') }
    const workersOf = (legs: readonly PickLeg[]) =>
      legs.flatMap((leg) => routes[leg]?.tiers.flatMap(({ workers }) => workers) ?? [])
    const served = workersOf(this.hasPairs ? LEGS : ['whole'])
    return {
      ...routes,
      model,
      apis: served.length === 0 ? null : sharedApis(served),
      workers: workersOf(LEGS),
    }
  }

  /** @param name id or alias of a model, case-sensitive; empty for any model */
  planOf(name: string): ModelPlan {
    return this.#plans.get(name === '' ? UNKNOWN_MODEL : name) ?? this.#unlisted
  }

  /** The model id of an alias, else the argument. */
  canonicalModel(name: string): string {
    return this.#plans.get(name)?.model ?? name
  }

  /** Route of a policy instance; undefined after its last worker left. */
  routeByKey(key: string, leg: PickLeg): ModelRoute | undefined {
    return this.#routes[leg].get(key)
  }

  routesOf(leg: PickLeg): Iterable<ModelRoute> {
    return this.#routes[leg].values()
  }
}

/** Model id → workers that list it, each once, in order of registration. */
function groupByModel(workers: readonly WorkerEntry[]): Map<string, WorkerEntry[]> {
  const holders = new Map<string, WorkerEntry[]>()
  for (const worker of workers) {
    for (const card of worker.models) {
      const group = holders.get(card.id)
      if (group === undefined) holders.set(card.id, [worker])
      else if (group[group.length - 1] !== worker) group.push(worker)
    }
  }
  holders.delete('')
  return holders
}

/** Name → model id. A model id is never an alias; an alias of two models belongs to the first registered. */
function mapNames(workers: readonly WorkerEntry[]): ReadonlyMap<string, string> {
  const names = new Map([...groupByModel(workers).keys(), UNKNOWN_MODEL].map((model) => [model, model]))
  for (const { id, aliases = [] } of workers.flatMap(({ models }) => models))
    for (const alias of aliases) if (alias !== '' && !names.has(alias)) names.set(alias, id)
  return names
}

/** Routes of one leg: workers that list the model first, wildcard workers after them. */
function makeRoutes(all: readonly WorkerEntry[], leg: PickLeg): LegRoutes {
  const workers = all.filter((worker) => worker.workerType === WORKER_TYPE_OF_LEG[leg])
  const routes = new Map<string, ModelRoute>()
  if (workers.length === 0) return routes
  // Mistyped names would be served by an engine that only failed to report its models.
  const isListed = workers.some(({ models }) => models.length > 0)
  const wildcards = workers.filter(
    ({ models, isUnlisted }) => models.length === 0 && !(isUnlisted && isListed),
  )
  const wildcardTiers = toTiers(wildcards)
  const add = (key: string, first: WorkerEntry | null, tiers: readonly Tier[], holderCount: number) =>
    routes.set(key, { key, leg, first, tiers, holderCount })
  for (const [key, holders] of groupByModel(workers)) {
    add(key, holders[0], [...toTiers(holders), ...wildcardTiers], holders.length)
  }
  if (wildcards.length > 0) add(WILDCARD_KEY, wildcards[0], wildcardTiers, wildcards.length)
  // A label applies to its model only, so requests without a model use the default policy.
  add(UNKNOWN_MODEL, null, toTiers(workers), workers.length)
  return routes
}

function sharedApis([first, ...others]: readonly WorkerEntry[]): ReadonlySet<string> {
  return new Set(first.apis.filter((api) => others.every(({ apis }) => apis.includes(api))))
}

function toTiers(workers: readonly WorkerEntry[]): Tier[] {
  const byPriority = Map.groupBy(workers, (worker) => worker.priority)
  const highestFirst = [...byPriority].sort(([a], [b]) => b - a)
  return highestFirst.map(([priority, members]) => ({
    priority,
    workers: members,
    slots: Int32Array.from(members, (worker) => worker.slot),
    hasEqualCosts: members.every(({ cost }) => cost === members[0].cost),
    found: openAvailability(members.length),
  }))
}

function largestTier(routes: LegRoutes): number {
  let largest = 0
  for (const route of routes.values()) {
    for (const tier of route.tiers) largest = Math.max(largest, tier.slots.length)
  }
  return largest
}
