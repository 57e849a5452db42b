/** GET /get_loads: asks every registered worker how busy it is. */
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
import { engineUrl } from './engine-url.ts'
import { fanOut } from './fan-out.ts'
import { LoadDetailsSchema, toLoadDetails, usedTokens } from './load-details.ts'

const MAX_PARALLEL = 32

const WorkerLoadSchema = Type.Object({
  worker: Type.String({ description: 'Worker URL.' }),
  load: Type.Integer({ description: 'Tokens in use in the KV cache, over all ranks; -1 when not known.' }),
  details: Type.Optional(LoadDetailsSchema),
})
const LoadsSchema = Type.Object({ workers: Type.Array(WorkerLoadSchema) })
type WorkerLoad = Static<typeof WorkerLoadSchema>

/** One call per engine: its data-parallel ranks share the answer. */
export async function readWorkerLoads(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
): Promise<Static<typeof LoadsSchema>> {
  const engines = [...Map.groupBy(workers, engineUrl).values()]
  const reports = await fanOut(engines, MAX_PARALLEL, ([first]) => readReport(controls, first))
  const ofEngine = new Map(engines.map(([first], place) => [engineUrl(first), reports[place]]))
  return { workers: workers.map((worker) => toWorkerLoad(worker, ofEngine.get(engineUrl(worker)) ?? null)) }
}

async function readReport(controls: WorkerControls, worker: WorkerEntry): Promise<EngineReport | null> {
  return (await controls.controlOf(worker.connectionMode)?.loads?.(worker)) ?? null
}

function toWorkerLoad({ url, dataParallel }: WorkerEntry, report: EngineReport | null): WorkerLoad {
  if (report === null) return { worker: url, load: -1 }
  const ranks = dataParallel === null ? report.ranks : ofRank(report.ranks, dataParallel.rank)
  const nowIso = new Date().toISOString()
  return { worker: url, load: usedTokens(ranks), details: toLoadDetails(ranks, report.timestamp ?? nowIso) }
}

/** The part of one rank; all of it where the engine does not tell its ranks apart. */
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
