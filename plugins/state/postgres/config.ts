/** Configuration section of the postgres plugin. */
import { integer, type Static, Type } from '#kernel'

const pemFile = (description: string) =>
  Type.Union([Type.String({ minLength: 1 }), Type.Null()], { default: null, reads: 'start', description })

export const postgresConfig = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      secret: true,
      description:
        'Connection URL, such as `postgres://user:password@host:5432/weir`; usually a reference: `{ "$env": "DATABASE_URL" }`. The encoding of the database must be UTF8.',
    }),
    schema: Type.String({
      pattern: '^[a-z_][a-z0-9_]{0,62}$',
      default: 'weir',
      description:
        'Schema of the tables, created if missing. Gateways with the same schema share their records.',
    }),
    tls: Type.Object(
      {
        mode: Type.Union([Type.Literal('url'), Type.Literal('off'), Type.Literal('verify')], {
          default: 'url',
          description:
            '`url`: according to `sslmode` in the URL. `off`: no TLS. `verify`: TLS with a certificate that is valid for the host.',
        }),
        caFile: pemFile(
          'PEM file of the trusted certificate authorities, instead of the default ones. For `verify`.',
        ),
        certFile: pemFile('PEM file of the client certificate. For `verify`.'),
        keyFile: pemFile('PEM file of the key of the client certificate.'),
      },
      { additionalProperties: false, default: {} },
    ),
    maxConnections: integer({ default: 8, min: 2, max: 200 }, 'Maximum connections per thread.'),
    connectTimeoutMs: integer(
      { default: 3_000, min: 100 },
      'Maximum wait of an operation for a connection, in milliseconds.',
    ),
    statementTimeoutMs: integer(
      { default: 10_000, min: 100 },
      'Maximum duration of a statement, enforced by the server, in milliseconds.',
    ),
    bootWaitMs: integer(
      { default: 3_000, min: 0 },
      'Maximum wait for the database at startup, in milliseconds, below kernel.lifecycle.stepMs. Then the gateway starts without it: requests that need stored responses get 503 until the database is reached.',
    ),
    maxWaiting: integer(
      { default: 2_000, min: 1 },
      'Maximum pending operations per thread; more are rejected with 503.',
    ),
    maxWaitingBytes: integer(
      { default: 64 * 1024 * 1024, min: 1_024 },
      'Maximum bytes of pending writes per thread; more are rejected with 503.',
    ),
    maxRecordBytes: integer(
      { default: 64 * 1024 * 1024, min: 1_024, max: 256 * 1024 * 1024 },
      'Maximum size of a record in bytes of JSON; larger ones are rejected with 413.',
    ),
    sweepIntervalMs: integer(
      { default: 30_000, min: 100 },
      'Interval at which expired records are deleted, in milliseconds.',
    ),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type PostgresConfig = Static<typeof postgresConfig>
