/** Configuration section of the scheduler. */
import { integer, number, type Static, Type } from '#kernel'
import { MAX_SLOTS } from './shared-slots.ts'

/** From highest to lowest priority. */
export const PRIORITIES = ['system', 'interactive', 'default', 'bulk'] as const
export type Priority = (typeof PRIORITIES)[number]

const ONE_DAY_MS = 86_400_000

const priorityName = (description: string, fallback?: Priority) =>
  Type.Enum([...PRIORITIES], fallback === undefined ? { description } : { default: fallback, description })

const milliseconds = (value: number, description: string) =>
  integer({ default: value, min: 1, max: ONE_DAY_MS }, description)

function classConfig(
  floor: number,
  share: number,
  queueSize: number,
  [queueTimeoutMs, starvationMs]: readonly [number, number],
  mayPreempt: boolean,
) {
  return Type.Object(
    {
      floor: integer({ default: floor, min: 0, max: MAX_SLOTS }, 'Slots reserved for this class.'),
      share: number(
        { default: share, min: 0, max: 1 },
        'Share of all slots reserved for this class, if larger than `floor`.',
      ),
      queueSize: integer(
        { default: queueSize, min: 0, max: MAX_SLOTS },
        'Maximum number of waiting requests of this class.',
      ),
      queueTimeoutMs: milliseconds(queueTimeoutMs, 'Maximum time in the queue, in milliseconds.'),
      starvationMs: milliseconds(
        starvationMs,
        'Time after which the oldest waiting request is admitted before higher classes, in milliseconds. Ignored for system.',
      ),
      mayPreempt: Type.Boolean({
        default: mayPreempt,
        description:
          'Whether the class may preempt requests of lower classes that have not sent their first byte.',
      }),
    },
    { default: {}, additionalProperties: false },
  )
}

export const schedulerConfig = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description: 'Enables priority scheduling, which replaces maxConcurrentRequests and its queue.',
    }),
    capacity: Type.Union([Type.Integer({ minimum: 1, maximum: MAX_SLOTS }), Type.Null()], {
      default: null,
      description:
        'Slots over all threads; null uses the sum of the max_running_requests labels of the ready workers.',
    }),
    maxReservedShare: number(
      { default: 0.5, min: 0, max: 1 },
      'Maximum share of all slots that can be reserved; beyond it, the reservations of lower classes are reduced first.',
    ),
    defaultMaxClass: priorityName('Maximum class of tenants that are not listed.', 'default'),
    tenants: Type.Array(
      Type.Object(
        {
          tenant: Type.String({ minLength: 1, description: 'Tenant name, as in tenants.overrides.' }),
          maxClass: priorityName('Maximum class this tenant may request.'),
        },
        { additionalProperties: false },
      ),
      { default: [], description: 'Maximum class by tenant.' },
    ),
    tenantMetricLimit: integer(
      { default: 32, min: 1, max: 1_000 },
      'Maximum number of tenants with their own metric series; the others are counted as `other`.',
    ),
    classes: Type.Object(
      {
        system: classConfig(32, 0, 64, [30_000, 5_000], true),
        interactive: classConfig(128, 0.25, 256, [30_000, 5_000], true),
        default: classConfig(0, 0.1, 512, [60_000, 30_000], false),
        bulk: classConfig(0, 0, 1_024, [300_000, 120_000], false),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { default: {}, additionalProperties: false },
)

export type SchedulerConfig = Static<typeof schedulerConfig>
