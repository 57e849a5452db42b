/** GET /get_loads: asks every registered worker how busy it is. */
import { type Host, type RouteDefinition, type Static, Type, type WorkerEntry } from '#kernel'
import { fanOut } from './fan-out.ts'
import { type LoadDetails, LoadDetailsSchema, readGauges, readLoads } from './load-report.ts'
import { type CallWorker, callOf, isGoodStatus } from './probe.ts'

/** @source routes facts 17.2 */
const CALL_TIMEOUT_MS = 5_000
const MAX_PARALLEL = 32
const MAX_REPLY_BYTES = 8_388_608
const LOADS_PATH = '/v1/loads?include=core,disagg,queues,memory'

const WorkerLoadSchema = Type.Object({
  worker: Type.String({ description: 'Worker URL.' }),
  load: Type.Integer({ description: 'Tokens in use in the KV cache, over all ranks; -1 when not known.' }),
  details: Type.Optional(LoadDetailsSchema),
})
const LoadsSchema = Type.Object({ workers: Type.Array(WorkerLoadSchema) })
type WorkerLoad = Static<typeof WorkerLoadSchema>

/** @source API spec 2.12, 4.5 */
export async function readWorkerLoads(
  call: CallWorker,
  workers: readonly WorkerEntry[],
): Promise<Static<typeof LoadsSchema>> {
  return { workers: await fanOut(workers, MAX_PARALLEL, (worker) => readWorkerLoad(call, worker)) }
}

/** Gauges tell a ratio but no token count, so their details come with load -1. */
async function readWorkerLoad(call: CallWorker, entry: WorkerEntry): Promise<WorkerLoad> {
  const worker = entry.url
  try {
    const own = await readOwnReport(call, entry)
    if (own !== null) return { worker, load: usedTokens(own), details: own }
    const gauges = hasGauges(entry) ? await readMetricsPage(call, entry) : null
    return gauges === null ? { worker, load: -1 } : { worker, load: -1, details: gauges }
  } catch {
    return { worker, load: -1 }
  }
}

/** This build has no load call for gRPC workers, so theirs is not known. */
async function readOwnReport(call: CallWorker, worker: WorkerEntry): Promise<LoadDetails | null> {
  if (worker.connectionMode !== 'http') return null
  const reply = await get(call, worker, LOADS_PATH)
  if (!isGoodStatus(reply.status)) return null
  return readLoads(parseJson(reply.body), new Date().toISOString())
}

function hasGauges(worker: WorkerEntry): boolean {
  return (
    worker.connectionMode === 'http' && (worker.runtimeType === 'vllm' || worker.runtimeType === 'sglang')
  )
}

async function readMetricsPage(call: CallWorker, worker: WorkerEntry): Promise<LoadDetails | null> {
  const reply = await get(call, worker, '/metrics')
  return isGoodStatus(reply.status) ? readGauges(reply.body.toString(), new Date().toISOString()) : null
}

function get(call: CallWorker, worker: WorkerEntry, path: string) {
  return call(worker, { method: 'GET', path, timeoutMs: CALL_TIMEOUT_MS, maxBodyBytes: MAX_REPLY_BYTES })
}

function usedTokens(details: LoadDetails): number {
  return details.loads.reduce((sum, rank) => sum + rank.num_used_tokens, 0)
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}

export function getLoadsRoute(host: Host): RouteDefinition {
  return {
    method: 'GET',
    path: '/get_loads',
    access: 'admin',
    errors: 'admin',
    handler: async (ctx) => ctx.json(200, await readWorkerLoads(callOf(host), host.balance.workers)),
    docs: {
      summary: 'Load of every worker',
      tag: 'Workers',
      responses: { 200: { description: 'One entry per worker.', schema: LoadsSchema } },
    },
  }
}
