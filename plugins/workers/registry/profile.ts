/** POST /start_profile and /stop_profile: switches the profilers of the engines on and off. */
import {
  adminErrorFormat,
  defineValidator,
  type Host,
  type RequestContext,
  type RouteDefinition,
  type Static,
  Type,
  type WorkerControls,
  type WorkerEntry,
  workerControls,
} from '#kernel'
import { callEngines, FailedCallSchema, takersOf } from './call-engines.ts'
import { optional } from './wire.ts'
import { workerKey } from './worker-url.ts'

/** Engines write what they have gathered before they answer. */
const CALL_TIMEOUT_MS = 630_000

const Whole = Type.Integer({ minimum: 0 })

/** Members beyond `url` go to the engines as they came. */
export const StartProfileSchema = Type.Object({
  url: optional(Type.String(), {
    description: 'Only this worker. Default: all workers that can be profiled.',
  }),
  output_dir: optional(Type.String(), { description: 'Folder on the engine’s machine.' }),
  start_step: optional(Whole),
  num_steps: optional(Whole),
  activities: optional(Type.Array(Type.String()), { description: 'Such as CPU and GPU.' }),
  with_stack: optional(Type.Boolean()),
  record_shapes: optional(Type.Boolean()),
  profile_by_stage: optional(Type.Boolean()),
})
export const StopProfileSchema = Type.Object({
  url: optional(Type.String(), {
    description: 'Only this worker. Default: all workers that can be profiled.',
  }),
})

const counts = {
  message: Type.String(),
  workers_profiled: Type.Integer(),
  total_workers: Type.Integer({ description: 'Workers that were meant.' }),
}
const ProfiledSchema = Type.Object({ status: Type.Literal('success'), ...counts })
const PartlyProfiledSchema = Type.Object({
  status: Type.Literal('partial_success'),
  ...counts,
  successful: Type.Array(Type.String({ description: 'Worker URL.' })),
  failed: Type.Array(FailedCallSchema),
})
const NothingToProfileSchema = Type.Object({ status: Type.Literal('error'), ...counts })

/** The reply; 206 when it is partial, 404 when no worker is meant. */
export type ProfileReport =
  | Static<typeof ProfiledSchema>
  | Static<typeof PartlyProfiledSchema>
  | Static<typeof NothingToProfileSchema>

type ProfileKind = 'start_profile' | 'stop_profile'
type ProfileBody = Static<typeof StartProfileSchema>

/** @param workers all registered workers, healthy or not */
export async function profileEngines(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
  kind: ProfileKind,
  { url: given, ...options }: ProfileBody,
): Promise<ProfileReport> {
  const url = given ?? undefined
  const targets = takersOf(controls, workers, kind).filter((worker) => isMeant(worker, url))
  if (targets.length === 0) {
    const message =
      url === undefined ? 'there are no workers to profile' : `no worker to profile has the url ${url}`
    return { status: 'error', message, workers_profiled: 0, total_workers: 0 }
  }
  const action = kind === 'start_profile' ? { kind, options } : { kind }
  const { successful, failed } = await callEngines(controls, targets, action, CALL_TIMEOUT_MS)
  const totals = { workers_profiled: successful.length, total_workers: targets.length }
  if (failed.length === 0) return { status: 'success', message: `all workers took ${kind}`, ...totals }
  const message = `${failed.length} of ${targets.length} workers did not take ${kind}`
  return { status: 'partial_success', message, ...totals, successful, failed }
}

/** A data-parallel rank is meant by its own URL and by that of its engine. */
function isMeant({ url, dataParallel }: WorkerEntry, wanted: string | undefined): boolean {
  if (wanted === undefined || wanted === url) return true
  return workerKey(wanted) === workerKey(dataParallel?.baseUrl ?? url)
}

const STATUS_OF = { success: 200, partial_success: 206, error: 404 } as const

const startValidator = defineValidator(StartProfileSchema)
const stopValidator = defineValidator(StopProfileSchema)

export function profileRoutes(host: Host): readonly RouteDefinition[] {
  const handle = async (ctx: RequestContext, kind: ProfileKind, body: ProfileBody) => {
    const report = await profileEngines(workerControls(host.upstream), host.balance.workers, kind, body)
    ctx.json(STATUS_OF[report.status], report)
  }
  const base = { method: 'POST', access: 'admin', errors: adminErrorFormat, endpoint: 'workers' } as const
  const responses = {
    200: { description: 'Every worker took it.', schema: ProfiledSchema },
    206: { description: 'Some or all did not.', schema: PartlyProfiledSchema },
    400: { description: 'Bad body.' },
    404: { description: 'No worker is meant.', schema: NothingToProfileSchema },
  }
  return [
    {
      ...base,
      path: '/start_profile',
      handler: (ctx) => handle(ctx, 'start_profile', startValidator.parse(optionalJson(ctx))),
      docs: {
        summary: 'Start the profilers of the engines',
        tag: 'Workers',
        body: Type.Optional(StartProfileSchema),
        responses,
      },
    },
    {
      ...base,
      path: '/stop_profile',
      handler: (ctx) => handle(ctx, 'stop_profile', stopValidator.parse(optionalJson(ctx))),
      docs: {
        summary: 'Stop the profilers of the engines',
        tag: 'Workers',
        body: Type.Optional(StopProfileSchema),
        responses,
      },
    },
  ]
}

/** No body is as good as an empty object. @throws json_parse_error (400) */
function optionalJson(ctx: RequestContext): unknown {
  return ctx.bodyBytes.length === 0 ? {} : ctx.bodyJson()
}
