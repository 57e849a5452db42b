/** The scheduler section: classes of requests, what each may take and how long it may wait. */
import { type Static, Type } from '#kernel'
import { MAX_SLOTS } from './shared-slots.ts'

/** From the most to the least urgent. */
export const PRIORITIES = ['system', 'interactive', 'default', 'bulk'] as const
export type Priority = (typeof PRIORITIES)[number]

const ONE_DAY_MS = 86_400_000

const priorityName = (description: string, fallback?: Priority) =>
  Type.Enum([...PRIORITIES], fallback === undefined ? { description } : { default: fallback, description })

const milliseconds = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: ONE_DAY_MS, description })

function classConfig(facts: ClassFacts) {
  return Type.Object(
    {
      floor: Type.Integer({
        default: facts.floor,
        minimum: 0,
        maximum: MAX_SLOTS,
        description: 'Slots kept for this class against lower ones.',
      }),
      share: Type.Number({
        default: facts.share,
        minimum: 0,
        maximum: 1,
        description: 'Part of all slots kept for this class, if that is more than the floor.',
      }),
      queueSize: Type.Integer({
        default: facts.queueSize,
        minimum: 0,
        maximum: MAX_SLOTS,
        description: 'Requests of this class that may wait.',
      }),
      queueTimeoutMs: milliseconds(facts.queueTimeoutMs, 'How long each may wait, in milliseconds.'),
      starvationMs: milliseconds(
        facts.starvationMs,
        'The longest waiting request goes before higher classes once it has waited this long, in milliseconds. Without effect for system.',
      ),
      mayPreempt: Type.Boolean({
        default: facts.mayPreempt,
        description: 'May end a request of a lower class that has not sent its first byte.',
      }),
    },
    { default: {}, additionalProperties: false },
  )
}

interface ClassFacts {
  readonly floor: number
  readonly share: number
  readonly queueSize: number
  readonly queueTimeoutMs: number
  readonly starvationMs: number
  readonly mayPreempt: boolean
}

const classFacts = (
  floor: number,
  share: number,
  queueSize: number,
  [queueTimeoutMs, starvationMs]: readonly [number, number],
  mayPreempt: boolean,
): ClassFacts => ({ floor, share, queueSize, queueTimeoutMs, starvationMs, mayPreempt })

export const schedulerConfig = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description: 'Admits requests by priority, in place of maxConcurrentRequests and its queue.',
    }),
    capacity: Type.Union([Type.Integer({ minimum: 1, maximum: MAX_SLOTS }), Type.Null()], {
      default: null,
      description:
        'Slots over all threads; null: what the labels max_running_requests of the ready workers add up to.',
    }),
    maxReservedShare: Type.Number({
      default: 0.5,
      minimum: 0,
      maximum: 1,
      description:
        'Most that floors and shares together keep of all slots; beyond it the lower classes lose first.',
    }),
    defaultMaxClass: priorityName('Highest class of tenants that are not listed.', 'default'),
    tenants: Type.Array(
      Type.Object(
        {
          tenant: Type.String({ minLength: 1, description: 'As under tenants.overrides.' }),
          maxClass: priorityName('Highest class this tenant may ask for.'),
        },
        { additionalProperties: false },
      ),
      { default: [], description: 'Highest class of single tenants.' },
    ),
    tenantMetricLimit: Type.Integer({
      default: 32,
      minimum: 1,
      maximum: 1_000,
      description: 'Tenants that metrics tell apart; the rest is `other`.',
    }),
    classes: Type.Object(
      {
        system: classConfig(classFacts(32, 0, 64, [30_000, 5_000], true)),
        interactive: classConfig(classFacts(128, 0.25, 256, [30_000, 5_000], true)),
        default: classConfig(classFacts(0, 0.1, 512, [60_000, 30_000], false)),
        bulk: classConfig(classFacts(0, 0, 1_024, [300_000, 120_000], false)),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { default: {}, additionalProperties: false },
)

export type SchedulerConfig = Static<typeof schedulerConfig>
