/** Configuration section of the history plugin. */
import { integer, type Static, Type } from '#kernel'

export const historyConfig = Type.Object(
  {
    maxAgeDays: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      default: 30,
      description:
        'Age after which responses are deleted, in days; null disables deletion by age. The text of a turn is kept while a newer response continues it.',
    }),
    maxResponsesPerTenant: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      default: null,
      description:
        'Maximum number of responses per tenant, beyond which the oldest are deleted; null disables the limit.',
    }),
    maxConversationAgeDays: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      default: 90,
      description:
        'Time without a change after which conversations are deleted, in days; null keeps them until the client deletes them.',
    }),
    maxBytesPerTenant: Type.Union([Type.Integer({ minimum: 1_048_576 }), Type.Null()], {
      default: 10 * 1024 * 1024 * 1024,
      description:
        'Maximum bytes of JSON of the stored responses and conversations of a tenant; beyond it, requests that store something are rejected with 507 before they run. Indexes, the events of background responses and turns that outlive their response are not counted. Requests that run at the same time may exceed it by what they store. Null disables the limit.',
    }),
    maxConversationsPerTenant: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      default: 100_000,
      description:
        'Maximum number of conversations per tenant; further ones are rejected with 429. Null disables the limit.',
    }),
    pruneIntervalMs: integer(
      { default: 60_000, min: 1_000 },
      'Interval at which old and surplus responses and conversations are deleted, in milliseconds.',
    ),
    maxChainResponses: integer(
      { default: 2_000, min: 1 },
      'Maximum length of a chain of responses that a request may continue; longer chains are rejected.',
    ),
    maxHistoryItems: integer(
      { default: 20_000, min: 1 },
      'Maximum number of history items that a request may load; more are rejected.',
    ),
    maxHistoryBytes: integer(
      { default: 64 * 1024 * 1024, min: 1_024 },
      'Maximum bytes of history that a request may load; more are rejected.',
    ),
    cacheBytes: integer(
      { default: 16 * 1024 * 1024, min: 0 },
      'Memory for recently used histories per thread, in bytes.',
    ),
    lockLeaseMs: integer(
      { default: 15_000, min: 1_000 },
      'Time for which a conversation stays locked after its gateway has died, in milliseconds. The clocks of all gateways must agree to within a small fraction of it.',
    ),
    ownerLeaseMs: integer(
      { default: 20_000, min: 1_000 },
      'Time after which background jobs of a dead gateway are restarted, in milliseconds.',
    ),
    eventsKeptMs: integer(
      { default: 3_600_000, min: 1_000 },
      'Time for which the events of a stream are kept for resuming, in milliseconds.',
    ),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type HistoryConfig = Static<typeof historyConfig>
