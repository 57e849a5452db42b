/** POST /flush_cache: empties the KV cache of every worker that can be told to. */
import {
  adminErrorFormat,
  type Host,
  type RouteDefinition,
  type Static,
  Type,
  type WorkerControls,
  type WorkerEntry,
  workerControls,
} from '#kernel'
import { callEngines, FailedCallSchema, takersOf } from './call-engines.ts'

const CALL_TIMEOUT_MS = 45_000

const counts = {
  message: Type.String(),
  workers_flushed: Type.Integer(),
  total_http_workers: Type.Integer({ description: 'Workers whose connection has such a call, over HTTP.' }),
  total_grpc_workers: Type.Optional(
    Type.Integer({ description: 'Those over gRPC; absent where there are none.' }),
  ),
  total_workers: Type.Integer({ description: 'The others included, which are skipped.' }),
}

const FlushedSchema = Type.Object({ status: Type.Literal('success'), ...counts })
const PartlyFlushedSchema = Type.Object({
  status: Type.Literal('partial_success'),
  ...counts,
  successful: Type.Array(Type.String({ description: 'Worker URL.' })),
  failed: Type.Array(FailedCallSchema),
})

/** The reply; 206 when it is partial. */
export type FlushReport = Static<typeof FlushedSchema> | Static<typeof PartlyFlushedSchema>

/** @param workers all registered workers, healthy or not */
export async function flushCaches(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
): Promise<FlushReport> {
  const targets = takersOf(controls, workers, 'flush_cache')
  const action = { kind: 'flush_cache' } as const
  const { successful, failed } = await callEngines(controls, targets, action, CALL_TIMEOUT_MS)
  const overGrpc = targets.filter(({ connectionMode }) => connectionMode === 'grpc').length
  const totals = {
    workers_flushed: successful.length,
    total_http_workers: targets.length - overGrpc,
    ...(overGrpc > 0 && { total_grpc_workers: overGrpc }),
    total_workers: workers.length,
  }
  if (successful.length === targets.length) {
    const message =
      targets.length === 0 ? 'there are no workers to flush' : 'all workers that take the call are flushed'
    return { status: 'success', message, ...totals }
  }
  const message = `${failed.length} of ${targets.length} workers could not be flushed`
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
      const report = await flushCaches(workerControls(host.upstream), host.balance.workers)
      ctx.json(report.status === 'success' ? 200 : 206, report)
    },
    docs: {
      summary: 'Flush the KV cache of all workers',
      tag: 'Workers',
      responses: {
        200: {
          description: 'Every worker that takes the call is flushed, or there is none.',
          schema: FlushedSchema,
        },
        206: { description: 'Some or all could not be flushed.', schema: PartlyFlushedSchema },
      },
    },
  }
}
