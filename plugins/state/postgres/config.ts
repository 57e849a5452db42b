/** Configuration section of the postgres plugin. */
import { type Static, Type } from '#kernel'

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
        caFile: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description:
            'PEM file of the trusted certificate authorities, instead of the default ones. For `verify`.',
        }),
        certFile: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description: 'PEM file of the client certificate. For `verify`.',
        }),
        keyFile: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description: 'PEM file of the key of the client certificate.',
        }),
      },
      { additionalProperties: false, default: {} },
    ),
    maxConnections: Type.Integer({
      minimum: 2,
      maximum: 200,
      default: 8,
      description: 'Maximum connections per thread.',
    }),
    connectTimeoutMs: Type.Integer({
      minimum: 100,
      default: 3_000,
      description: 'Maximum wait of an operation for a connection, in milliseconds.',
    }),
    statementTimeoutMs: Type.Integer({
      minimum: 100,
      default: 10_000,
      description: 'Maximum duration of a statement, enforced by the server, in milliseconds.',
    }),
    bootWaitMs: Type.Integer({
      minimum: 0,
      default: 8_000,
      description: 'Maximum wait for the database at startup, in milliseconds.',
    }),
    maxWaiting: Type.Integer({
      minimum: 1,
      default: 2_000,
      description: 'Maximum pending operations per thread; more are rejected with 503.',
    }),
    maxWaitingBytes: Type.Integer({
      minimum: 1_024,
      default: 64 * 1024 * 1024,
      description: 'Maximum bytes of pending writes per thread; more are rejected with 503.',
    }),
    maxRecordBytes: Type.Integer({
      minimum: 1_024,
      maximum: 256 * 1024 * 1024,
      default: 64 * 1024 * 1024,
      description: 'Maximum size of a record in bytes of JSON; larger ones are rejected with 413.',
    }),
    sweepIntervalMs: Type.Integer({
      minimum: 100,
      default: 30_000,
      description: 'Interval at which expired records are deleted, in milliseconds.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type PostgresConfig = Static<typeof postgresConfig>
