/** The reply of the limits routes: the settings as they are written in the configuration file, and what is in use. */
import { Type } from '#kernel'
import { limitsConfig } from './config.ts'
import { PRIORITIES } from './scheduler-config.ts'

const count = (description: string) => Type.Integer({ description })

const ClassUseSchema = Type.Object({
  running: count('Running requests.'),
  waiting: count('Waiting requests.'),
})

export const LimitsReplySchema = Type.Object({
  limits: limitsConfig,
  use: Type.Object({
    inUse: count('Permits of the concurrency limit in use, over all threads.'),
    waiting: count('Requests that wait for one.'),
    rateLeft: Type.Union([Type.Integer(), Type.Null()], {
      description: 'Requests that could begin now; null without a rate.',
    }),
    scheduler: Type.Union(
      [
        Type.Object({
          capacity: count('Slots over all threads.'),
          classes: Type.Object(Object.fromEntries(PRIORITIES.map((name) => [name, ClassUseSchema]))),
        }),
        Type.Null(),
      ],
      { description: 'Null while the scheduler is off.' },
    ),
    tenant: Type.Optional(
      Type.Array(
        Type.Object({
          unit: Type.Enum(['requests', 'tokens']),
          ruleId: Type.Union([Type.String(), Type.Null()]),
          perMinute: count('The limit.'),
          left: count('What is left of it; below 0 in debt.'),
        }),
        { description: 'With the query `tenant`: its limits.' },
      ),
    ),
  }),
})
