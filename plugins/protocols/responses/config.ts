/** The responses section of the configuration file. */
import { type Static, Type } from '#kernel'

export const responsesConfig = Type.Object(
  {
    encryptionKey: Type.Union([Type.String({ minLength: 32, secret: true }), Type.Null()], {
      default: null,
      description:
        'Secret of at least 32 characters under which reasoning and compacted conversations are sealed for clients to keep, such as { $env: WEIR_RESPONSES_KEY }. Null: one is made once and kept in the database of postgres, or else in the data directory of storage; without both it is made at each start, and what was sealed before is dropped. What was sealed with the stored key can be opened beside a configured one too.',
    }),
    streamOpensAfterMs: Type.Integer({
      default: 3_000,
      minimum: 0,
      maximum: 600_000,
      description:
        'A stream begins with the first word of its worker, so that a failure before it has a status of its own, or after this many milliseconds.',
    }),
    background: Type.Object(
      {
        maxRunningPerTenant: Type.Integer({
          default: 16,
          minimum: 1,
          maximum: 100_000,
          description: 'Background responses of one tenant that run at a time on each thread.',
        }),
        maxRunning: Type.Integer({
          default: 256,
          minimum: 1,
          maximum: 100_000,
          description: 'Background responses that run at a time on each thread.',
        }),
        maxWaitingPerTenant: Type.Integer({
          default: 10_000,
          minimum: 1,
          maximum: 10_000_000,
          description: 'Background responses of one tenant that may wait; one more is answered 429.',
        }),
        pollMs: Type.Integer({
          default: 1_000,
          minimum: 10,
          maximum: 60_000,
          description:
            'How often each thread looks for work that others have left, in milliseconds. Its own is begun at once.',
        }),
        afterCrash: Type.Union([Type.Literal('fail'), Type.Literal('restart')], {
          default: 'fail',
          description:
            'What becomes of background responses whose gateway has died while it worked on them: they are failed, or begun anew (tools may then run twice).',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    socket: Type.Object(
      {
        maxOpen: Type.Integer({
          default: 1_000,
          minimum: 0,
          maximum: 100_000,
          description: 'Sockets that may be open on each thread; 0 refuses all.',
        }),
        maxAgeMs: Type.Integer({
          default: 3_600_000,
          minimum: 1_000,
          maximum: 86_400_000,
          description: 'How long a socket takes new requests, in milliseconds.',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type ResponsesConfig = Static<typeof responsesConfig>
