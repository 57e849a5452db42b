/** The postgres section of the configuration file: which database, how it is reached, and how long anything may take. */
import { type Static, Type } from '#kernel'

export const postgresConfig = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      secret: true,
      description:
        'Where the database is, such as `postgres://user:password@host:5432/weir`. Give it by reference: `{ "$env": "DATABASE_URL" }`. Its encoding must be UTF8.',
    }),
    schema: Type.String({
      pattern: '^[a-z_][a-z0-9_]{0,62}$',
      default: 'weir',
      description: 'Schema of the tables; made when missing. Gateways that share records name the same one.',
    }),
    tls: Type.Object(
      {
        mode: Type.Union([Type.Literal('url'), Type.Literal('off'), Type.Literal('verify')], {
          default: 'url',
          description:
            '`url`: as `sslmode` in the URL says. `off`: plain. `verify`: TLS, and the certificate must be valid for the host.',
        }),
        caFile: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description: 'Authorities to trust instead of the usual ones, a PEM file. With `verify`.',
        }),
        certFile: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description: 'Certificate of the gateway, a PEM file. With `verify`.',
        }),
        keyFile: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description: 'Key of that certificate, a PEM file.',
        }),
      },
      { additionalProperties: false, default: {} },
    ),
    maxConnections: Type.Integer({
      minimum: 2,
      maximum: 200,
      default: 8,
      description: 'Connections of each thread.',
    }),
    connectTimeoutMs: Type.Integer({
      minimum: 100,
      default: 3_000,
      description: 'How long an operation waits for a connection, in milliseconds.',
    }),
    statementTimeoutMs: Type.Integer({
      minimum: 100,
      default: 10_000,
      description: 'How long one statement may take, in milliseconds; the server ends it then.',
    }),
    bootWaitMs: Type.Integer({
      minimum: 0,
      default: 8_000,
      description: 'How long the boot waits for a database that does not answer yet, in milliseconds.',
    }),
    maxWaiting: Type.Integer({
      minimum: 1,
      default: 2_000,
      description: 'Operations of each thread that may wait; beyond it they are refused with 503.',
    }),
    maxWaitingBytes: Type.Integer({
      minimum: 1_024,
      default: 64 * 1024 * 1024,
      description: 'Bytes of writes of each thread that may wait; beyond it they are refused with 503.',
    }),
    maxRecordBytes: Type.Integer({
      minimum: 1_024,
      maximum: 256 * 1024 * 1024,
      default: 64 * 1024 * 1024,
      description: 'Largest record, in bytes of JSON. A larger one is refused with 413.',
    }),
    sweepIntervalMs: Type.Integer({
      minimum: 100,
      default: 30_000,
      description: 'Pause between two sweeps that remove expired records, in milliseconds.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type PostgresConfig = Static<typeof postgresConfig>
