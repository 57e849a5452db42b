/** GET /get_loads: asks every registered worker how busy it is. */
import {
  adminErrorFormat,
  type Host,
  type RouteDefinition,
  type Static,
  Type,
  type WorkerEntry,
} from '#kernel'
import { fanOut } from './fan-out.ts'
import { type LoadDetails, LoadDetailsSchema, readGauges, readLoads } from './load-report.ts'
import { askLoads, askMetricsPage, jsonOf } from './load-sources.ts'
import { type CallWorker, callOf, engineUrl, isGoodStatus } from './probe.ts'

const MAX_PARALLEL = 32

const WorkerLoadSchema = Type.Object({
  worker: Type.String({ description: 'Worker URL.' }),
  load: Type.Integer({ description: 'Tokens in use in the KV cache, over all ranks; -1 when not known.' }),
  details: Type.Optional(LoadDetailsSchema),
})
const LoadsSchema = Type.Object({ workers: Type.Array(WorkerLoadSchema) })
type WorkerLoad = Static<typeof WorkerLoadSchema>

/** One call per engine: its data-parallel ranks share the answer. @source API spec 2.12, 4.5 */
export async function readWorkerLoads(
  call: CallWorker,
  workers: readonly WorkerEntry[],
): Promise<Static<typeof LoadsSchema>> {
  const engines = [...Map.groupBy(workers, engineUrl).values()]
  const details = await fanOut(engines, MAX_PARALLEL, ([first]) => readDetails(call, first))
  const ofEngine = new Map(engines.map(([first], place) => [engineUrl(first), details[place]]))
  return { workers: workers.map((worker) => toWorkerLoad(worker, ofEngine.get(engineUrl(worker)) ?? null)) }
}

interface Answer {
  readonly details: LoadDetails
  /** Gauges tell a ratio but no token count. */
  readonly hasTokens: boolean
}

function toWorkerLoad({ url, dataParallel }: WorkerEntry, answer: Answer | null): WorkerLoad {
  if (answer === null) return { worker: url, load: -1 }
  const details = dataParallel === null ? answer.details : ofRank(answer.details, dataParallel.rank)
  return { worker: url, load: answer.hasTokens ? usedTokens(details) : -1, details }
}

/** The part of one rank; all of it where the engine does not tell its ranks apart. */
function ofRank(details: LoadDetails, rank: number): LoadDetails {
  const loads = details.loads.filter((load) => load.dp_rank === rank)
  return loads.length === 0 ? details : { ...details, dp_rank_count: 1, loads }
}

/** @returns null when the worker does not tell */
async function readDetails(call: CallWorker, entry: WorkerEntry): Promise<Answer | null> {
  // This build has no load call for gRPC workers.
  if (entry.connectionMode !== 'http') return null
  try {
    const own = await askLoads(call, entry)
    const details = isGoodStatus(own.status) ? readLoads(jsonOf(own), new Date().toISOString()) : null
    if (details !== null) return { details, hasTokens: true }
    const gauges = hasGauges(entry) ? await readMetricsPage(call, entry) : null
    return gauges === null ? null : { details: gauges, hasTokens: false }
  } catch {
    return null
  }
}

function hasGauges({ runtimeType }: WorkerEntry): boolean {
  return runtimeType === 'vllm' || runtimeType === 'sglang'
}

async function readMetricsPage(call: CallWorker, worker: WorkerEntry): Promise<LoadDetails | null> {
  const reply = await askMetricsPage(call, worker)
  return isGoodStatus(reply.status) ? readGauges(reply.body.toString(), new Date().toISOString()) : null
}

function usedTokens(details: LoadDetails): number {
  return details.loads.reduce((sum, rank) => sum + rank.num_used_tokens, 0)
}

export function getLoadsRoute(host: Host): RouteDefinition {
  return {
    method: 'GET',
    path: '/get_loads',
    access: 'admin',
    errors: adminErrorFormat,
    handler: async (ctx) => ctx.json(200, await readWorkerLoads(callOf(host), host.balance.workers)),
    docs: {
      summary: 'Load of every worker',
      tag: 'Workers',
      responses: { 200: { description: 'One entry per worker.', schema: LoadsSchema } },
    },
  }
}
