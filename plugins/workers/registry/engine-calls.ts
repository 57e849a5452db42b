/** Administrative calls to every engine: POST /flush_cache, /start_profile and /stop_profile. */
import {
  adminErrorFormat,
  defineValidator,
  type EngineAction,
  type Host,
  type RequestContext,
  type RouteDefinition,
  type Static,
  type TSchema,
  Type,
  type WorkerControls,
  type WorkerEntry,
  workerControls,
} from '#kernel'
import { engineUrl, fanOut, nullable, warnOfUnread } from '#shared'
import { workerKey } from './worker-url.ts'

const MAX_PARALLEL = 32

/**
 * Calls every engine once, for all of its data-parallel ranks.
 * @param ask called with the first worker of each engine
 * @returns the answer of its engine, by worker
 */
export async function askEngines<Answer>(
  workers: readonly WorkerEntry[],
  ask: (first: WorkerEntry) => Promise<Answer>,
): Promise<ReadonlyMap<WorkerEntry, Answer>> {
  const engines = [...Map.groupBy(workers, engineUrl).values()]
  const answers = await fanOut(engines, MAX_PARALLEL, ([first]) => ask(first))
  return new Map(engines.flatMap((ranks, place) => ranks.map((worker) => [worker, answers[place]] as const)))
}

const FailedCallSchema = Type.Object({ worker: Type.String(), error: Type.String() })

/** Report of a call that some or all engines did not accept. */
const partly = <Counts extends Record<string, TSchema>>(counts: Counts) =>
  Type.Object({
    status: Type.Literal('partial_success'),
    ...counts,
    successful: Type.Array(Type.String({ description: 'Worker URL.' })),
    failed: Type.Array(FailedCallSchema),
  })

/** Workers whose connection mode supports the action. */
function supporting(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
  kind: EngineAction['kind'],
): readonly WorkerEntry[] {
  return workers.filter(({ connectionMode }) => {
    const control = controls.controlOf(connectionMode)
    return control?.perform !== undefined && control.actions.includes(kind)
  })
}

/** @param workers whose connection mode supports the action @returns their URLs, in order, by outcome */
async function callEngines(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
  action: EngineAction,
  timeoutMs: number,
) {
  const problems = await askEngines(workers, async (first) =>
    controls.controlOf(first.connectionMode)?.perform?.(first, action, timeoutMs),
  )
  const successful: string[] = []
  const failed: Static<typeof FailedCallSchema>[] = []
  for (const worker of workers) {
    const error = problems.get(worker) ?? null
    if (error === null) successful.push(worker.url)
    else failed.push({ worker: worker.url, error })
  }
  return { successful, failed }
}

/** Sends the report of calls: 200 if all engines accepted them, else 206 with the workers. */
function sendReport(
  ctx: RequestContext,
  { successful, failed }: Awaited<ReturnType<typeof callEngines>>,
  totals: object,
  messages: { readonly whole: string; readonly partial: string },
): void {
  if (failed.length === 0) ctx.json(200, { status: 'success', message: messages.whole, ...totals })
  else ctx.json(206, { status: 'partial_success', message: messages.partial, ...totals, successful, failed })
}

const FLUSH_TIMEOUT_MS = 45_000

const flushCounts = {
  message: Type.String(),
  workers_flushed: Type.Integer(),
  total_http_workers: Type.Integer({ description: 'HTTP workers that support the call.' }),
  total_grpc_workers: Type.Optional(
    Type.Integer({ description: 'gRPC workers that support the call; absent if there are none.' }),
  ),
  total_workers: Type.Integer({
    description: 'All workers, including those that do not support the call and are skipped.',
  }),
}

const FlushedSchema = Type.Object({ status: Type.Literal('success'), ...flushCounts })
const PartlyFlushedSchema = partly(flushCounts)

export function flushCacheRoute(host: Host): RouteDefinition {
  return {
    method: 'POST',
    path: '/flush_cache',
    access: 'admin',
    errors: adminErrorFormat,
    readsBody: false,
    handler: async (ctx) => {
      const controls = workerControls(host.upstream)
      const { workers } = host.balance
      const targets = supporting(controls, workers, 'flush_cache')
      const outcome = await callEngines(controls, targets, { kind: 'flush_cache' }, FLUSH_TIMEOUT_MS)
      const overGrpc = targets.filter(({ connectionMode }) => connectionMode === 'grpc').length
      const totals = {
        workers_flushed: outcome.successful.length,
        total_http_workers: targets.length - overGrpc,
        ...(overGrpc > 0 && { total_grpc_workers: overGrpc }),
        total_workers: workers.length,
      }
      sendReport(ctx, outcome, totals, {
        whole: targets.length === 0 ? 'no workers to flush' : 'flushed all workers that support the call',
        partial: `failed to flush ${outcome.failed.length} of ${targets.length} workers`,
      })
    },
    docs: {
      summary: 'Flush the KV cache of all workers',
      tag: 'Workers',
      responses: {
        200: {
          description: 'Every worker that supports the call was flushed, or there is none.',
          schema: FlushedSchema,
        },
        206: { description: 'Some or all workers could not be flushed.', schema: PartlyFlushedSchema },
      },
    },
  }
}

/** Engines write the collected profile before they answer. */
const PROFILE_TIMEOUT_MS = 630_000

const Whole = Type.Integer({ minimum: 0 })

const url = nullable(Type.String(), 'URL of the one worker to profile. Default: all workers that support it.')
/** Members other than `url` are passed to the engines unchanged. */
const StartProfileSchema = Type.Object({
  url,
  output_dir: nullable(Type.String(), 'Directory on the machine of the engine.'),
  start_step: nullable(Whole),
  num_steps: nullable(Whole),
  activities: nullable(Type.Array(Type.String()), 'Such as CPU and GPU.'),
  with_stack: nullable(Type.Boolean()),
  record_shapes: nullable(Type.Boolean()),
  profile_by_stage: nullable(Type.Boolean()),
})
const StopProfileSchema = Type.Object({ url })

const profileCounts = {
  message: Type.String(),
  workers_profiled: Type.Integer(),
  total_workers: Type.Integer({ description: 'Workers that the request selected.' }),
}
const ProfiledSchema = Type.Object({ status: Type.Literal('success'), ...profileCounts })
const PartlyProfiledSchema = partly(profileCounts)
const NothingToProfileSchema = Type.Object({ status: Type.Literal('error'), ...profileCounts })

/** A data-parallel rank is selected by its own URL and by that of its engine. */
function isSelected(worker: WorkerEntry, requestedUrl: string): boolean {
  return requestedUrl === worker.url || workerKey(requestedUrl) === workerKey(engineUrl(worker))
}

const PROFILE_CALLS = [
  { kind: 'start_profile', schema: StartProfileSchema, summary: 'Start the profilers of the engines' },
  { kind: 'stop_profile', schema: StopProfileSchema, summary: 'Stop the profilers of the engines' },
] as const

export function profileRoutes(host: Host): readonly RouteDefinition[] {
  return PROFILE_CALLS.map(({ kind, schema, summary }) => {
    const validator = defineValidator(schema)
    return {
      method: 'POST',
      path: `/${kind}`,
      access: 'admin',
      errors: adminErrorFormat,
      endpoint: 'workers',
      handler: async (ctx) => {
        const controls = workerControls(host.upstream)
        const { url = null, ...options } = validator.parse(ctx.bodyBytes.length === 0 ? {} : ctx.bodyJson())
        const all = supporting(controls, host.balance.workers, kind)
        const targets = url === null ? all : all.filter((worker) => isSelected(worker, url))
        if (targets.length === 0) {
          const message =
            url === null ? 'no workers to profile' : `no worker that can be profiled has the url ${url}`
          ctx.json(404, { status: 'error', message, workers_profiled: 0, total_workers: 0 })
          return
        }
        if (kind === 'stop_profile') warnOfUnread(ctx, options, {})
        const action = kind === 'start_profile' ? { kind, options } : { kind }
        const outcome = await callEngines(controls, targets, action, PROFILE_TIMEOUT_MS)
        const totals = { workers_profiled: outcome.successful.length, total_workers: targets.length }
        sendReport(ctx, outcome, totals, {
          whole: `${kind} succeeded on all workers`,
          partial: `${kind} failed on ${outcome.failed.length} of ${targets.length} workers`,
        })
      },
      docs: {
        summary,
        tag: 'Workers',
        body: Type.Optional(schema),
        responses: {
          200: { description: 'Every selected worker accepted the call.', schema: ProfiledSchema },
          206: {
            description: 'Some or all workers did not accept the call.',
            schema: PartlyProfiledSchema,
          },
          400: { description: 'Invalid body.' },
          404: { description: 'No worker is selected.', schema: NothingToProfileSchema },
        },
      },
    }
  })
}
