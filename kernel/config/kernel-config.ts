/** The kernel's own section of the configuration file: types, schema, defaults. */
import type { Static } from 'typebox'
import { Type } from '../contracts/type.ts'
import { BreakerConfigSchema } from './breaker-config.ts'
import { integer, MAX_TIMER_MS, number } from './number-settings.ts'
import { TlsConfigSchema } from './tls-config.ts'

const ONE_DAY_MS = 86_400_000

const RetryConfigSchema = Type.Object(
  {
    maxAttempts: integer(
      { default: 5, min: 1 },
      'Attempts per request, including the first; 1 disables retries.',
    ),
    initialBackoffMs: integer(
      { default: 50, min: 1, max: ONE_DAY_MS },
      'Delay before the second attempt, in milliseconds.',
    ),
    maxBackoffMs: integer(
      { default: 30_000, min: 1, max: ONE_DAY_MS },
      'Longest delay between attempts, in milliseconds.',
    ),
    maxWaitMs: integer(
      { default: 1_000, min: 0, max: ONE_DAY_MS },
      'Longest Retry-After of a worker to wait for, in milliseconds. If it is longer, another worker is tried at once, or the client gets the response.',
    ),
    backoffMultiplier: number({ default: 1.5, min: 1 }, 'Growth of the delay with each attempt.'),
    jitterFactor: number(
      { default: 0.2, min: 0, max: 1 },
      'Random variation of each delay, as a share of it.',
    ),
    statuses: Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), {
      default: [408, 429, 500, 502, 503, 504, 529],
      description: 'Response statuses of workers that are retried and count as failures.',
    }),
  },
  { default: {}, additionalProperties: false },
)

const milliseconds = (value: number, description: string) =>
  integer({ default: value, min: 0, max: MAX_TIMER_MS }, description)
/** @source RFC 9110 §5.6.2 (token) */
const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"

const firstByteTimes = {
  headMs: milliseconds(
    900_000,
    'Timeout from sending the request to the response head, in milliseconds, if the client requested no stream: engines send the head when the answer is complete. 0: only requestMs applies.',
  ),
  firstTokenMs: milliseconds(
    300_000,
    'Timeout from sending the request to the first byte of a streamed body, in milliseconds. 0: only requestMs applies.',
  ),
}
/** Without defaults, which would replace those of the kernel. */
const ownTimes = {
  headMs: Type.Integer({ minimum: 0, maximum: MAX_TIMER_MS, description: 'As upstream.headMs.' }),
  firstTokenMs: Type.Integer({ minimum: 0, maximum: MAX_TIMER_MS, description: 'As upstream.firstTokenMs.' }),
}

export const KernelConfigSchema = Type.Object(
  {
    host: Type.String({
      default: '127.0.0.1',
      description: 'Address to listen on; 0.0.0.0 for every interface.',
    }),
    port: integer({ default: 30_000, min: 0, max: 65_535 }, 'Port of the API; 0 takes any free one.'),
    threads: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 128,
        description:
          'Number of data threads. Default: cores minus one, at least 1. 0 runs everything on the main thread.',
      }),
    ),
    warmUp: Type.Boolean({
      default: true,
      description:
        'Before the gateway is ready, each data thread serves requests of its own for two seconds, so that the first ones of clients do not run uncompiled code. They reach no worker and are in no metric, log, limit or store.',
    }),
    policy: Type.Optional(
      Type.String({
        description:
          'Load balancing policy of models whose workers have no policy label. Default: cache_aware with plugin policies, round_robin without.',
      }),
    ),
    prefillPolicy: Type.Optional(Type.String({ description: 'Policy of prefill workers. Default: policy.' })),
    decodePolicy: Type.Optional(Type.String({ description: 'Policy of decode workers. Default: policy.' })),
    auth: Type.Union([Type.Literal('required'), Type.Literal('off')], {
      default: 'required',
      description: 'off: no route requires a key, and an auth plugin is not required.',
    }),
    log: Type.Object(
      {
        level: Type.Union(
          ['trace', 'debug', 'info', 'warn', 'error', 'silent'].map((level) => Type.Literal(level)),
          { default: 'info', description: 'Lowest level that is logged.' },
        ),
        access: Type.Boolean({
          default: true,
          description: 'One line per request, at level info (warn for 4xx, error for 5xx).',
        }),
        probes: Type.Boolean({
          default: false,
          description: 'Also logs requests to /health, /liveness and /readiness.',
        }),
      },
      { default: {}, additionalProperties: false },
    ),
    http: Type.Object(
      {
        maxBodyBytes: integer(
          { default: 67_108_864, min: 1 },
          'Largest request body in bytes; larger ones get 413.',
        ),
        maxHeldBodyBytes: integer(
          { default: 536_870_912, min: 1 },
          'Largest total of request bodies that one data thread holds at once, in bytes, including WebSocket messages and files that requests name by URL; further ones get 503. Bodies of up to 16 KiB are not counted. At least maxBodyBytes.',
        ),
        maxHeldBodyBytesPerTenant: integer(
          { default: 268_435_456, min: 1 },
          'The same for one tenant, or for one client address of callers without a tenant, in bytes; further ones get 429. At least maxBodyBytes.',
        ),
        maxJsonDepth: integer(
          { default: 128, min: 8, max: 512 },
          'Deepest nesting of JSON bodies; deeper ones get 400.',
        ),
        keepAlive: Type.Boolean({
          default: true,
          description:
            'False sends "Connection: close" with every response and closes the connection after it. For proxies that reuse connections after more than 8 s of idle time (docs/guide/http-server.md).',
        }),
        maxConnections: Type.Optional(
          Type.Integer({
            minimum: 1,
            description:
              'Largest number of client connections, divided equally between the data threads; further ones are refused. Default on Linux: half of the descriptors (ulimit -n) beyond 128; elsewhere unlimited.',
          }),
        ),
        binarySha256: Type.Optional(
          Type.String({
            pattern: '^[0-9a-f]{64}$',
            description:
              'SHA-256 of the permitted uWebSockets.js binary, in lower-case hex. Default: that of the build in the lock file. Set it if you replace the package.',
          }),
        ),
        bodyIdleMs: milliseconds(
          60_000,
          'Longest pause within a request body before 408, in milliseconds. 0 disables the limit.',
        ),
        bodyMinBytesPerSecond: integer(
          { default: 1_024, min: 0 },
          'Lowest average rate of a request body; slower ones get 408 after bodyIdleMs. 0 disables the limit.',
        ),
        replyIdleMs: milliseconds(
          120_000,
          'A client that reads nothing of its response for this long is disconnected, in milliseconds. 0 disables the limit.',
        ),
        maxHeaderCount: integer(
          { default: 90, min: 8, max: 100 },
          'Largest number of request headers; more get 431.',
        ),
        maxHeaderBytes: integer(
          { default: 32_768, min: 1024, max: 65_536 },
          'Largest header block in bytes; larger ones get 431.',
        ),
        requestIdHeaders: Type.Array(Type.String(), {
          default: ['x-request-id', 'x-correlation-id', 'x-trace-id', 'request-id'],
          description: 'Headers that may carry the request id; the first match is used.',
        }),
        corsOrigins: Type.Array(Type.String(), {
          default: ['*'],
          description: 'Allowed CORS origins; ["*"] allows any, [] none.',
        }),
        heartbeatMs: milliseconds(
          5_000,
          'Interval of comment lines on an idle event stream, in milliseconds. 0 disables the heartbeat.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    upstream: Type.Object(
      {
        connectMs: milliseconds(10_000, 'Timeout of connecting to a worker, in milliseconds.'),
        ...firstByteTimes,
        models: Type.Record(
          Type.String(),
          Type.Partial(Type.Object(ownTimes), { additionalProperties: false }),
          {
            default: {},
            description:
              "headMs and firstTokenMs of single models, by model id. A worker's own http_pool settings come first.",
          },
        ),
        idleMs: milliseconds(
          300_000,
          'Longest pause within a response body, in milliseconds. 0 disables the limit.',
        ),
        requestMs: milliseconds(
          1_800_000,
          'Timeout of the whole exchange, including a streamed body, in milliseconds.',
        ),
        keepAliveMs: milliseconds(
          4_000,
          'Idle connections are closed after this time, in milliseconds; keep it below the 5 s of common worker servers.',
        ),
        maxIdlePerWorker: integer({ default: 500, min: 0 }, 'Idle connections kept per worker and thread.'),
        maxResponseHeaderBytes: integer(
          { default: 65_536, min: 1024 },
          'Largest header block of a worker response in bytes.',
        ),
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
            "Request headers that are forwarded to workers; all others are dropped, and so is the gateway's request id if x-request-id is not listed. Names that begin with x-request-id- are always forwarded.",
        }),
        forwardResponseHeaders: Type.Array(Type.String({ pattern: HEADER_NAME }), {
          default: [],
          description:
            'Response headers of workers that clients receive in addition to those that describe the body, caching, retries and rate limits; all others are dropped, such as set-cookie. Hop-by-hop headers and those that the gateway writes never pass.',
        }),
      },
      {
        default: {},
        additionalProperties: false,
        replacedKeys: { firstByteMs: 'headMs (whole responses) and firstTokenMs (streams)' },
      },
    ),
    tls: Type.Optional(TlsConfigSchema),
    caFile: Type.Optional(
      Type.String({
        minLength: 1,
        reads: 'start',
        description:
          'PEM file with certificate authorities that the gateway trusts in addition to those of Node when it calls workers, issuers and tool servers over TLS.',
      }),
    ),
    retry: RetryConfigSchema,
    breaker: BreakerConfigSchema,
    shutdown: Type.Object(
      {
        graceMs: milliseconds(
          180_000,
          'Time from the signal to the end, in milliseconds; requests still open are cut then.',
        ),
        settleMs: milliseconds(
          5_000,
          'New connections are still accepted for this time after the signal, so that load balancers notice, in milliseconds; at most half of graceMs.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    limits: Type.Object(
      {
        maxWorkers: integer({ default: 4_096, min: 1, max: 65_536 }, 'Largest number of workers.'),
      },
      { default: {}, additionalProperties: false },
    ),
    lifecycle: Type.Object(
      {
        stepMs: milliseconds(10_000, 'Deadline of each plugin step at boot and stop, in milliseconds.'),
        readinessWaitMs: milliseconds(
          30_000,
          'Longest time after the start for which /readiness waits for the first response of every configured worker and for the tokenizers of gRPC workers, in milliseconds. Also the time from the registration of a worker for which requests for unknown models get 503 instead of 404, because the worker may serve them. 0 disables the wait.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

/** The kernel section with every default filled in. */
export type KernelConfig = Static<typeof KernelConfigSchema> & { threads: number }
