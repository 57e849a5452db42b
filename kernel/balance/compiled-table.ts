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
  /** API formats that all of its workers accept. */
  readonly apis: ReadonlySet<string>
  /** Number of workers that list the model, or of wildcard workers if none lists it. */
  readonly holderCount: number
}

/** False for the route of models that only wildcard workers serve. */
export function isListed(route: ModelRoute): boolean {
  return route.key !== WILDCARD_KEY
}

type LegRoutes = ReadonlyMap<string, ModelRoute>

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
  readonly #aliases: ReadonlyMap<string, string>

  constructor(table: WorkerTable) {
    this.workers = table.workers
    this.byId = new Map(table.workers.map((worker) => [worker.id, worker]))
    this.bySlot = new Map(table.workers.map((worker) => [worker.slot, worker]))
    this.#aliases = mapAliases(table.workers, groupByModel(table.workers))
    this.#routes = {
      whole: makeRoutes(table.workers, 'whole'),
      prefill: makeRoutes(table.workers, 'prefill'),
      decode: makeRoutes(table.workers, 'decode'),
    }
    this.hasPairs = this.#routes.prefill.size > 0 && this.#routes.decode.size > 0
    this.largestTier = Math.max(...Object.values(this.#routes).map(largestTier))
  }

  /** The model id of an alias, else the argument. Case-sensitive. */
  canonicalModel(model: string): string {
    return this.#aliases.get(model) ?? model
  }

  /** Route of a canonical model, or of one leg of it; null if no worker serves it. */
  routeOf(model: string, leg: PickLeg = 'whole'): ModelRoute | null {
    const routes = this.#routes[leg]
    const route = routes.get(model === '' ? UNKNOWN_MODEL : model)
    return route ?? routes.get(WILDCARD_KEY) ?? null
  }

  /** True if every worker that may get a request for the model accepts this API format, or no worker may get one. */
  takesApi(model: string, api: string): boolean {
    if (!takes(this.routeOf(model, 'whole'), api)) return false
    return (
      !this.hasPairs ||
      (takes(this.routeOf(model, 'prefill'), api) && takes(this.routeOf(model, 'decode'), api))
    )
  }

  /** Whole workers and legs of pairs that serve a canonical model. */
  workersOf(model: string): readonly WorkerEntry[] {
    const routes = LEGS.flatMap((leg) => this.routeOf(model, leg) ?? [])
    return routes.flatMap(({ tiers }) => tiers.flatMap(({ workers }) => workers))
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

/** Alias → model id. A model id is never an alias; an alias of two models belongs to the first registered. */
function mapAliases(
  workers: readonly WorkerEntry[],
  holders: ReadonlyMap<string, unknown>,
): Map<string, string> {
  const aliases = new Map<string, string>()
  for (const worker of workers) {
    for (const card of worker.models) {
      for (const alias of card.aliases ?? []) {
        if (alias === '' || alias === UNKNOWN_MODEL || holders.has(alias) || aliases.has(alias)) continue
        aliases.set(alias, card.id)
      }
    }
  }
  return aliases
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
    routes.set(key, { key, leg, first, tiers, apis: sharedApis(tiers), holderCount })
  for (const [key, holders] of groupByModel(workers)) {
    add(key, holders[0], [...toTiers(holders), ...wildcardTiers], holders.length)
  }
  if (wildcards.length > 0) add(WILDCARD_KEY, wildcards[0], wildcardTiers, wildcards.length)
  // A label applies to its model only, so requests without a model use the default policy.
  add(UNKNOWN_MODEL, null, toTiers(workers), workers.length)
  return routes
}

function takes(route: ModelRoute | null, api: string): boolean {
  return route === null || route.apis.has(api)
}

function sharedApis(tiers: readonly Tier[]): ReadonlySet<string> {
  const [first, ...others] = tiers.flatMap(({ workers }) => workers)
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
