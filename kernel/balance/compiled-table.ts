/** Turns the published worker table into what a pick needs: for each model, its workers in tiers. Runs once per publish. */
import type { WorkerEntry, WorkerTable } from '../contracts/worker.ts'

/** Model id of requests that name none; every worker may take them. @source routing facts 1.1 (6), routes facts 4.9 */
export const UNKNOWN_MODEL = 'unknown'

/** Key of the route of models that only wildcard workers serve. No model can have it: ids are not empty. */
const WILDCARD_KEY = ''

/** Workers of one priority, in order of registration. */
export interface Tier {
  readonly priority: number
  readonly workers: readonly WorkerEntry[]
  /** The workers' slots, at the same positions. */
  readonly slots: Int32Array
}

/** Where requests for one model may go. */
export interface ModelRoute {
  /**
   * Names the policy instance: the model's id. Models that nobody lists share the instance of the wildcard workers,
   * since their names are the clients' to invent and must not make the gateway remember each.
   */
  readonly key: string
  /** The `policy` label of the first worker, as it was written. */
  readonly policyLabel: string | undefined
  /** Best first: those that list the model by priority, then wildcard workers by priority. */
  readonly tiers: readonly Tier[]
}

/** One published table, ready for picking. Immutable. */
export class CompiledTable {
  /** All registered workers in order of registration. */
  readonly workers: readonly WorkerEntry[]
  readonly byId: ReadonlyMap<string, WorkerEntry>
  readonly bySlot: ReadonlyMap<number, WorkerEntry>
  /** Workers of the largest tier. */
  readonly largestTier: number
  private readonly routes: ReadonlyMap<string, ModelRoute>
  private readonly aliases: ReadonlyMap<string, string>

  constructor(table: WorkerTable) {
    this.workers = table.workers
    this.byId = new Map(table.workers.map((worker) => [worker.id, worker]))
    this.bySlot = new Map(table.workers.map((worker) => [worker.slot, worker]))
    const regular = table.workers.filter(takesWholeRequests)
    const holders = groupByModel(regular)
    this.aliases = mapAliases(regular, holders)
    this.routes = makeRoutes(regular, holders)
    this.largestTier = largestTier(this.routes)
  }

  /** The model's own id when `model` is an alias of it, else `model`. Case-sensitive. */
  canonicalModel(model: string): string {
    return this.aliases.get(model) ?? model
  }

  /** Where a canonical model goes; null when no worker serves it. */
  routeOf(model: string): ModelRoute | null {
    const route = this.routes.get(model === '' ? UNKNOWN_MODEL : model)
    return route ?? this.routes.get(WILDCARD_KEY) ?? null
  }

  /** The route that a policy instance belongs to; undefined when its last worker has left. */
  routeByKey(key: string): ModelRoute | undefined {
    return this.routes.get(key)
  }

  /** False when there is nobody to send any request to. */
  get hasRoutes(): boolean {
    return this.routes.size > 0
  }
}

/** Prefill and decode workers do half a request each: they belong to pairs, which get groups of their own. */
function takesWholeRequests(worker: WorkerEntry): boolean {
  return worker.workerType === 'regular'
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

/** @source routing facts 2.5: those that list the model first, wildcard workers after them */
function makeRoutes(
  regular: readonly WorkerEntry[],
  holders: ReadonlyMap<string, readonly WorkerEntry[]>,
): Map<string, ModelRoute> {
  const routes = new Map<string, ModelRoute>()
  const wildcards = regular.filter((worker) => worker.models.length === 0)
  const wildcardTiers = toTiers(wildcards)
  for (const [key, workers] of holders) {
    const policyLabel = workers[0].labels.policy
    routes.set(key, { key, policyLabel, tiers: [...toTiers(workers), ...wildcardTiers] })
  }
  if (wildcards.length > 0) {
    const policyLabel = wildcards[0].labels.policy
    routes.set(WILDCARD_KEY, { key: WILDCARD_KEY, policyLabel, tiers: wildcardTiers })
  }
  // A label speaks for its model only, so requests without a model keep the default policy.
  if (regular.length > 0) {
    routes.set(UNKNOWN_MODEL, { key: UNKNOWN_MODEL, policyLabel: undefined, tiers: toTiers(regular) })
  }
  return routes
}

function toTiers(workers: readonly WorkerEntry[]): Tier[] {
  const byPriority = Map.groupBy(workers, (worker) => worker.priority)
  const highestFirst = [...byPriority].sort(([a], [b]) => b - a)
  return highestFirst.map(([priority, members]) => ({
    priority,
    workers: members,
    slots: Int32Array.from(members, (worker) => worker.slot),
  }))
}

function largestTier(routes: ReadonlyMap<string, ModelRoute>): number {
  let largest = 0
  for (const route of routes.values()) {
    for (const tier of route.tiers) largest = Math.max(largest, tier.slots.length)
  }
  return largest
}
