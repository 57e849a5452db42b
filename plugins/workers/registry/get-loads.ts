/** GET /get_loads: the load that every registered worker reports. */
import {
  adminErrorFormat,
  type EngineReport,
  type Host,
  type RankLoad,
  type RouteDefinition,
  type Static,
  Type,
  type WorkerControls,
  type WorkerEntry,
  workerControls,
} from '#kernel'
import { askEngines } from './engine-calls.ts'
import { usedTokens } from './engine-load.ts'

const RankDetailsSchema = Type.Object({
  dp_rank: Type.Integer(),
  num_running_reqs: Type.Integer(),
  num_waiting_reqs: Type.Integer(),
  num_total_reqs: Type.Integer(),
  num_used_tokens: Type.Integer(),
  max_total_num_tokens: Type.Integer(),
  max_running_requests: Type.Integer(),
  token_usage: Type.Number({ description: '-1 if the worker reports neither tokens nor their share.' }),
  gen_throughput: Type.Number(),
  cache_hit_rate: Type.Number(),
  utilization: Type.Number(),
})

const LoadDetailsSchema = Type.Object({
  timestamp: Type.String({ description: 'ISO 8601.' }),
  dp_rank_count: Type.Integer(),
  loads: Type.Array(RankDetailsSchema),
})

/** Numbers that the engine does not report are 0. */
export function toLoadDetails(
  ranks: readonly RankLoad[],
  timestamp: string,
): Static<typeof LoadDetailsSchema> {
  return { timestamp, dp_rank_count: ranks.length, loads: ranks.map(toRankDetails) }
}

function toRankDetails(load: RankLoad): Static<typeof RankDetailsSchema> {
  const [running, waiting] = [orZero(load.runningRequests), orZero(load.waitingRequests)]
  return {
    dp_rank: load.rank,
    num_running_reqs: running,
    num_waiting_reqs: waiting,
    num_total_reqs: running + waiting,
    num_used_tokens: orZero(load.usedTokens),
    max_total_num_tokens: orZero(load.maxTokens),
    max_running_requests: orZero(load.maxRequests),
    // A missing gauge must not read as an empty cache.
    token_usage: load.usedTokens < 0 ? load.kvUsage : orZero(load.kvUsage),
    gen_throughput: load.tokensPerSecond,
    cache_hit_rate: orZero(load.cacheHitRate),
    utilization: orZero(load.utilization),
  }
}

function orZero(value: number): number {
  return Math.max(0, value)
}

const WorkerLoadSchema = Type.Object({
  worker: Type.String({ description: 'Worker URL.' }),
  load: Type.Integer({ description: 'Tokens in use in the KV cache, summed over all ranks; -1 if unknown.' }),
  details: Type.Optional(LoadDetailsSchema),
})
const LoadsSchema = Type.Object({ workers: Type.Array(WorkerLoadSchema) })
type WorkerLoad = Static<typeof WorkerLoadSchema>

/** Calls each engine once; its data-parallel ranks share the report. */
async function readWorkerLoads(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
): Promise<Static<typeof LoadsSchema>> {
  const reports = await askEngines(workers, async (first) =>
    controls.controlOf(first.connectionMode)?.loads?.(first),
  )
  return { workers: workers.map((worker) => toWorkerLoad(worker, reports.get(worker) ?? null)) }
}

function toWorkerLoad({ url, dataParallel }: WorkerEntry, report: EngineReport | null): WorkerLoad {
  if (report === null) return { worker: url, load: -1 }
  const ranks = dataParallel === null ? report.ranks : ofRank(report.ranks, dataParallel.rank)
  const nowIso = new Date().toISOString()
  return { worker: url, load: usedTokens(ranks), details: toLoadDetails(ranks, report.timestamp ?? nowIso) }
}

/** The part of one rank, or the whole report if the engine does not list its ranks. */
function ofRank(ranks: readonly RankLoad[], rank: number): readonly RankLoad[] {
  const own = ranks.filter((load) => load.rank === rank)
  return own.length === 0 ? ranks : own
}

export function getLoadsRoute(host: Host): RouteDefinition {
  return {
    method: 'GET',
    path: '/get_loads',
    access: 'admin',
    errors: adminErrorFormat,
    handler: async (ctx) =>
      ctx.json(200, await readWorkerLoads(workerControls(host.upstream), host.balance.workers)),
    docs: {
      summary: 'Load of every worker',
      tag: 'Workers',
      responses: { 200: { description: 'One entry per worker.', schema: LoadsSchema } },
    },
  }
}
