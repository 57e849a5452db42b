/** The responses section of the configuration file. */
import { type Static, Type } from '#kernel'

export const responsesConfig = Type.Object(
  {
    encryptionKey: Type.Union([Type.String({ minLength: 32, secret: true }), Type.Null()], {
      default: null,
      description:
        'Secret of at least 32 characters that encrypts the reasoning and the compacted conversations that clients keep, such as { $env: WEIR_RESPONSES_KEY }. Null: a key is made once and kept by the postgres plugin, or else by the storage plugin; without both it is made at each start, and what was encrypted before is dropped. The stored key still decrypts if another one is configured.',
    }),
    streamOpensAfterMs: Type.Integer({
      default: 3_000,
      minimum: 0,
      maximum: 600_000,
      description:
        'Milliseconds after which a stream is opened even if its worker has not begun to answer. A failure before that has an HTTP status of its own.',
    }),
    background: Type.Object(
      {
        maxRunningPerTenant: Type.Integer({
          default: 16,
          minimum: 1,
          maximum: 100_000,
          description: 'Background responses of one tenant that run at the same time on each thread.',
        }),
        maxRunning: Type.Integer({
          default: 256,
          minimum: 1,
          maximum: 100_000,
          description: 'Background responses that run at the same time on each thread.',
        }),
        maxWaitingPerTenant: Type.Integer({
          default: 10_000,
          minimum: 1,
          maximum: 10_000_000,
          description:
            'Background responses of one tenant that may be queued; further ones are rejected with 429.',
        }),
        pollMs: Type.Integer({
          default: 1_000,
          minimum: 10,
          maximum: 60_000,
          description:
            'Interval at which each thread looks for queued responses of other threads and gateways, in milliseconds. Its own start at once, and so do those of gateways in a mesh.',
        }),
        afterCrash: Type.Union([Type.Literal('fail'), Type.Literal('restart')], {
          default: 'fail',
          description:
            'What happens to background responses whose gateway stopped while they ran: `fail` ends them as failed, `restart` runs them again (tools may then run twice).',
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
          description: 'WebSockets that may be open on each thread; 0 refuses all.',
        }),
        maxPerTenant: Type.Integer({
          default: 250,
          minimum: 1,
          maximum: 100_000,
          description:
            'WebSockets of one tenant that may be open on each thread; further ones are rejected with 429. Callers without a key share maxOpen.',
        }),
        maxMessageBytes: Type.Integer({
          default: 8 * 1024 * 1024,
          minimum: 65_536,
          maximum: 64 * 1024 * 1024,
          description:
            'Largest message, in bytes. Since the beginning of a message is held by each WebSocket, together they also stay within kernel.http.maxHeldBodyBytes and maxHeldBodyBytesPerTenant, and a larger message means fewer of them.',
        }),
        maxAgeMs: Type.Integer({
          default: 3_600_000,
          minimum: 1_000,
          maximum: 86_400_000,
          description: 'Age up to which a WebSocket accepts new requests, in milliseconds.',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type ResponsesConfig = Static<typeof responsesConfig>
