/** POST /flush_cache: empties the KV cache of every HTTP worker. */
import {
  adminErrorFormat,
  type Host,
  type RouteDefinition,
  type Static,
  Type,
  type WorkerEntry,
} from '#kernel'
import { callEngines, FailedCallSchema } from './call-engines.ts'
import { type CallWorker, callOf } from './probe.ts'

/** @source routes facts 17.1 */
const CALL_TIMEOUT_MS = 45_000

const counts = {
  message: Type.String(),
  workers_flushed: Type.Integer(),
  total_http_workers: Type.Integer(),
  total_workers: Type.Integer({ description: 'gRPC workers included, which are skipped.' }),
}

const FlushedSchema = Type.Object({ status: Type.Literal('success'), ...counts })
const PartlyFlushedSchema = Type.Object({
  status: Type.Literal('partial_success'),
  ...counts,
  successful: Type.Array(Type.String({ description: 'Worker URL.' })),
  failed: Type.Array(FailedCallSchema),
})

/** The reply; 206 when it is partial. @source API spec 4.5 */
export type FlushReport = Static<typeof FlushedSchema> | Static<typeof PartlyFlushedSchema>

/** @param workers all registered workers, healthy or not */
export async function flushCaches(call: CallWorker, workers: readonly WorkerEntry[]): Promise<FlushReport> {
  const targets = workers.filter((worker) => worker.connectionMode === 'http')
  const { successful, failed } = await callEngines(call, targets, {
    path: '/flush_cache',
    timeoutMs: CALL_TIMEOUT_MS,
  })
  const totals = {
    workers_flushed: successful.length,
    total_http_workers: targets.length,
    total_workers: workers.length,
  }
  if (successful.length === targets.length) {
    const message =
      targets.length === 0 ? 'there are no HTTP workers to flush' : 'all HTTP workers are flushed'
    return { status: 'success', message, ...totals }
  }
  const message = `${failed.length} of ${targets.length} HTTP workers could not be flushed`
  return { status: 'partial_success', message, ...totals, successful, failed }
}

export function flushCacheRoute(host: Host): RouteDefinition {
  return {
    method: 'POST',
    path: '/flush_cache',
    access: 'admin',
    errors: adminErrorFormat,
    readsBody: false,
    handler: async (ctx) => {
      const report = await flushCaches(callOf(host), host.balance.workers)
      ctx.json(report.status === 'success' ? 200 : 206, report)
    },
    docs: {
      summary: 'Flush the KV cache of all HTTP workers',
      tag: 'Workers',
      responses: {
        200: { description: 'Every HTTP worker is flushed, or there is none.', schema: FlushedSchema },
        206: { description: 'Some or all could not be flushed.', schema: PartlyFlushedSchema },
      },
    },
  }
}
