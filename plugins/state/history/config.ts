/** The history section of the configuration file: how much is kept, for how long, and what one request may load. */
import { type Static, Type } from '#kernel'

export const historyConfig = Type.Object(
  {
    maxAgeDays: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      default: 30,
      description:
        'Responses older than this are removed, in days; null keeps them. Conversations stay until they are deleted. A turn that a younger one continues stays part of its history.',
    }),
    maxResponsesPerTenant: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      default: null,
      description: 'Beyond so many responses of one tenant the oldest are removed; null keeps any number.',
    }),
    pruneIntervalMs: Type.Integer({
      minimum: 1_000,
      default: 60_000,
      description: 'Pause between two rounds that remove what is too old or too much, in milliseconds.',
    }),
    maxChainResponses: Type.Integer({
      minimum: 1,
      default: 2_000,
      description: 'Longest chain of responses that a request may continue. A longer one is refused.',
    }),
    maxHistoryItems: Type.Integer({
      minimum: 1,
      default: 20_000,
      description: 'Items of history that one request may load. More are refused.',
    }),
    maxHistoryBytes: Type.Integer({
      minimum: 1_024,
      default: 64 * 1024 * 1024,
      description: 'Bytes of history that one request may load. More are refused.',
    }),
    cacheBytes: Type.Integer({
      minimum: 0,
      default: 16 * 1024 * 1024,
      description: 'Memory of each thread for histories that were used last, in bytes of their text.',
    }),
    lockLeaseMs: Type.Integer({
      minimum: 1_000,
      default: 15_000,
      description:
        "How long a conversation stays locked after its gateway has died, in milliseconds. Gateways' clocks must agree to a small part of it.",
    }),
    ownerLeaseMs: Type.Integer({
      minimum: 1_000,
      default: 20_000,
      description: 'How long after its gateway has died background work counts as lost, in milliseconds.',
    }),
    eventsKeptMs: Type.Integer({
      minimum: 1_000,
      default: 3_600_000,
      description: 'How long the events of a stream can be resumed, in milliseconds after each was sent.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type HistoryConfig = Static<typeof historyConfig>
