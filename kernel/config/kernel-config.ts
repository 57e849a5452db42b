/** The kernel's own section of the configuration file: types, schema, defaults. */
import type { Static } from 'typebox'
import { Type } from '../contracts/type.ts'
import { BreakerConfigSchema } from './breaker-config.ts'
import { RetryConfigSchema } from './retry-config.ts'
import { TlsConfigSchema } from './tls-config.ts'

/** Timers take a longer time for none, and are over at once. milliseconds */
const MAX_TIMER_MS = 2_147_483_647
const milliseconds = (value: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: MAX_TIMER_MS, default: value, description })
const port = (value: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: 65535, default: value, description })

export const KernelConfigSchema = Type.Object(
  {
    host: Type.String({ default: '127.0.0.1', description: 'Address to listen on.' }),
    port: port(30000, 'Port of the API; 0 takes any free one.'),
    threads: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 128,
        description:
          'Data threads. Default: cores minus one, at least 1. 0 runs everything on the main thread.',
      }),
    ),
    policy: Type.Optional(
      Type.String({
        description:
          'Load balancing policy of models whose workers name none. Default: what an enabled plugin says, which is cache_aware with plugin policies; round_robin without.',
      }),
    ),
    prefillPolicy: Type.Optional(
      Type.String({ description: 'Policy of prefill workers. Default: as policy.' }),
    ),
    decodePolicy: Type.Optional(
      Type.String({ description: 'Policy of decode workers. Default: as policy.' }),
    ),
    auth: Type.Union([Type.Literal('required'), Type.Literal('off')], {
      default: 'required',
      description: 'off: no route asks for a key, and protected routes may exist without an auth plugin.',
    }),
    log: Type.Object(
      {
        level: Type.Union(
          ['trace', 'debug', 'info', 'warn', 'error', 'silent'].map((level) => Type.Literal(level)),
          { default: 'info', description: 'Least level that is written.' },
        ),
        access: Type.Boolean({
          default: true,
          description: 'One line per request, at level info (warn for 4xx, error for 5xx).',
        }),
        probes: Type.Boolean({
          default: false,
          description: 'Access lines for /health, /liveness and /readiness too.',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    http: Type.Object(
      {
        maxBodyBytes: Type.Integer({
          minimum: 1,
          default: 67_108_864,
          description: 'Larger request bodies get 413.',
        }),
        maxJsonDepth: Type.Integer({
          minimum: 8,
          maximum: 512,
          default: 128,
          description: 'JSON bodies that are nested deeper get 400.',
        }),
        keepAlive: Type.Boolean({
          default: true,
          description:
            'False sends "Connection: close" with every response and closes the connection after it. For proxies that reuse connections that have been idle for more than 8 s (docs/guide/http-server.md).',
        }),
        maxConnections: Type.Optional(
          Type.Integer({
            minimum: 1,
            description:
              'Client connections at once, shared equally by the data threads; further ones are refused. Default on Linux: half of the descriptors (ulimit -n) that are left after 128; elsewhere not limited.',
          }),
        ),
        binarySha256: Type.Optional(
          Type.String({
            pattern: '^[0-9a-f]{64}$',
            description:
              'SHA-256 of the uWebSockets.js binary that may be loaded, in lower-case hex. Default: that of the build in the lock file. For those who replace the package.',
          }),
        ),
        bodyIdleMs: milliseconds(60_000, 'Silence within a request body; then 408. 0 never.'),
        bodyMinBytesPerSecond: Type.Integer({
          minimum: 0,
          default: 1_024,
          description: 'Slower request bodies get 408 after bodyIdleMs; on average, 0 any.',
        }),
        replyIdleMs: milliseconds(
          120_000,
          'A client that takes nothing of its reply for so long is cut; 0 never.',
        ),
        maxHeaderCount: Type.Integer({
          minimum: 8,
          maximum: 100,
          default: 90,
          description: 'More request headers get 431.',
        }),
        maxHeaderBytes: Type.Integer({
          minimum: 1024,
          maximum: 65_536,
          default: 32_768,
          description: 'Larger header blocks get 431.',
        }),
        requestIdHeaders: Type.Array(Type.String(), {
          default: ['x-request-id', 'x-correlation-id', 'x-trace-id', 'request-id'],
          description: 'Where the request id is looked for, first match wins.',
        }),
        corsOrigins: Type.Array(Type.String(), {
          default: ['*'],
          description: 'Allowed origins; ["*"] allows any, [] none.',
        }),
        heartbeatMs: milliseconds(5_000, 'A silent event stream gets a comment line this often; 0 never.'),
      },
      { default: {}, additionalProperties: false },
    ),
    upstream: Type.Object(
      {
        connectMs: milliseconds(10_000, 'To connect to a worker.'),
        firstByteMs: milliseconds(
          0,
          'From sending the request to the first response byte; 0: only requestMs counts.',
        ),
        idleMs: milliseconds(300_000, 'Silence between body bytes of a response; 0 never.'),
        requestMs: milliseconds(1_800_000, 'The whole exchange, streamed body included.'),
        keepAliveMs: milliseconds(
          4_000,
          'Idle connections are closed after this; below the 5 s of common worker servers.',
        ),
        maxIdlePerWorker: Type.Integer({
          minimum: 0,
          default: 500,
          description: 'Idle connections kept per worker and thread.',
        }),
        maxResponseHeaderBytes: Type.Integer({ minimum: 1024, default: 65_536 }),
        forwardHeaders: Type.Array(Type.String(), {
          default: [
            'authorization',
            'x-request-id',
            'x-correlation-id',
            'traceparent',
            'tracestate',
            'x-weir-routing-key',
            'x-smg-routing-key',
          ],
          description:
            "Request headers that reach the worker; everything else is dropped, the gateway's own request id too when x-request-id is not listed. Names beginning with x-request-id- always pass.",
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    tls: Type.Optional(TlsConfigSchema),
    caFile: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'PEM with further authorities that the gateway trusts when it calls workers, issuers and tool servers over TLS, beside those of Node.',
      }),
    ),
    retry: RetryConfigSchema,
    breaker: BreakerConfigSchema,
    shutdown: Type.Object(
      {
        graceMs: milliseconds(180_000, 'From the signal to the end; streams still open then are cut.'),
        settleMs: milliseconds(
          5_000,
          'New connections are still taken this long after the signal, so that balancers notice; at most half of graceMs.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    limits: Type.Object(
      {
        maxWorkers: Type.Integer({
          minimum: 1,
          maximum: 65_536,
          default: 4_096,
          description: 'Rows of the shared counters.',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    lifecycle: Type.Object(
      { stepMs: milliseconds(10_000, 'Deadline of each plugin step at boot and stop.') },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

/** The kernel section with every default filled in. */
export type KernelConfig = Static<typeof KernelConfigSchema> & { threads: number }
