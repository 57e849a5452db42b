/** Turns the published worker table into what a pick needs: for each model and leg, its workers in tiers. Runs once per publish. */
import type { PickLeg } from '../contracts/policy.ts'
import type { WorkerEntry, WorkerTable, WorkerType } from '../contracts/worker.ts'

/** Model id of requests that name none; every worker may take them. */
export const UNKNOWN_MODEL = 'unknown'

/** Key of the route of models that only wildcard workers serve. No model can have it: ids are not empty. */
const WILDCARD_KEY = ''

/** Whom each leg goes to: a prefill or decode worker does half a request, so it takes no whole one. */
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
  /** What was found out about them last, kept by `breakers.ts`. */
  readonly found: Availability
}

/** The available workers of a tier: the first `length` entries of both lists. */
export interface Availability {
  length: number
  /** Positions in the tier, ascending. */
  readonly positions: Int32Array
  /** Their slots, at the same places. */
  readonly slots: Int32Array
  /** Slot → place; right for the slots of these only, and only once it was made. */
  indexes: Int32Array | null
  isIndexed: boolean
  /** State of all statuses and breakers that it holds for. */
  stamp: number
  /** False: it may change by itself, as time goes on. */
  isSettled: boolean
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
  }
}

/** Where requests for one model, or one leg of them, may go. */
export interface ModelRoute {
  /**
   * Names the policy instance: the model's id. Models that nobody lists share the instance of the wildcard workers,
   * since their names are the clients' to invent and must not make the gateway remember each.
   */
  readonly key: string
  readonly leg: PickLeg
  /** The worker whose `policy` label speaks for the model: the first one; null where labels do not count. */
  readonly first: WorkerEntry | null
  /** Best first: those that list the model by priority, then wildcard workers by priority. */
  readonly tiers: readonly Tier[]
  /** What every one of its workers takes as clients send it. */
  readonly apis: ReadonlySet<string>
  /** How many workers list the model; of models that nobody lists, how many wildcard workers there are. */
  readonly holderCount: number
}

/** False for the route of models that only wildcard workers serve. */
export function isListed(route: ModelRoute): boolean {
  return route.key !== WILDCARD_KEY
}

const LEGS: readonly PickLeg[] = ['whole', 'prefill', 'decode']

type LegRoutes = ReadonlyMap<string, ModelRoute>

/** One published table, ready for picking. Immutable. */
export class CompiledTable {
  /** All registered workers in order of registration. */
  readonly workers: readonly WorkerEntry[]
  readonly byId: ReadonlyMap<string, WorkerEntry>
  readonly bySlot: ReadonlyMap<number, WorkerEntry>
  /** Workers of the largest tier. */
  readonly largestTier: number
  /** True when there are prefill and decode workers. */
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

  /** The model's own id when `model` is an alias of it, else `model`. Case-sensitive. */
  canonicalModel(model: string): string {
    return this.#aliases.get(model) ?? model
  }

  /** Where a canonical model, or one leg of it, goes; null when no worker serves it. */
  routeOf(model: string, leg: PickLeg = 'whole'): ModelRoute | null {
    const routes = this.#routes[leg]
    const route = routes.get(model === '' ? UNKNOWN_MODEL : model)
    return route ?? routes.get(WILDCARD_KEY) ?? null
  }

  /** True when every worker that may get a request for the model takes this format itself, or nobody may. */
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

  /** The route that a policy instance belongs to; undefined when its last worker has left. */
  routeByKey(key: string, leg: PickLeg): ModelRoute | undefined {
    return this.#routes[leg].get(key)
  }

  /** All routes of one leg. */
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

/** Alias → model id. A real id is never an alias, and of two models with one alias the first registered has it. */
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

/** Workers that list the model first, wildcard workers after them; one set per leg. */
function makeRoutes(all: readonly WorkerEntry[], leg: PickLeg): LegRoutes {
  const workers = all.filter((worker) => worker.workerType === WORKER_TYPE_OF_LEG[leg])
  const routes = new Map<string, ModelRoute>()
  if (workers.length === 0) return routes
  const wildcards = workers.filter((worker) => worker.models.length === 0)
  const wildcardTiers = toTiers(wildcards)
  for (const [key, holders] of groupByModel(workers)) {
    const tiers = [...toTiers(holders), ...wildcardTiers]
    const apis = sharedApis(tiers)
    routes.set(key, { key, leg, first: holders[0], tiers, apis, holderCount: holders.length })
  }
  if (wildcards.length > 0) {
    const holderCount = wildcards.length
    routes.set(WILDCARD_KEY, {
      key: WILDCARD_KEY,
      leg,
      first: wildcards[0],
      tiers: wildcardTiers,
      apis: sharedApis(wildcardTiers),
      holderCount,
    })
  }
  // A label speaks for its model only, so requests without a model keep the default policy.
  const holderCount = workers.length
  const tiers = toTiers(workers)
  const apis = sharedApis(tiers)
  routes.set(UNKNOWN_MODEL, { key: UNKNOWN_MODEL, leg, first: null, tiers, apis, holderCount })
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
