/** Configuration section of the tracing plugin. */
import { integer, number, type Static, Type } from '#kernel'

const ONE_DAY_MS = 86_400_000
/** Valid header names and values. @source RFC 9110 §5.6.2 */
const TOKEN = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

export const tracingConfig = Type.Object(
  {
    endpoint: Type.String({
      default: 'http://127.0.0.1:4318/v1/traces',
      pattern: '^https?://.+',
      description: 'URL of the collector: OTLP over HTTP with protobuf.',
    }),
    headers: Type.Record(Type.String({ pattern: TOKEN }), Type.String({ pattern: '^[\\t\\x20-\\x7e]*$' }), {
      additionalProperties: false,
      default: {},
      secret: true,
      description: 'Headers of export requests, such as an API key.',
    }),
    serviceName: Type.String({ default: 'weir', minLength: 1 }),
    sampleRatio: number(
      { default: 1, min: 0, max: 1 },
      'Share of requests that are traced if the caller sends no trace context; otherwise the decision of the caller applies.',
    ),
    batchSpans: integer({ default: 64, min: 1 }, 'Maximum spans per export.'),
    intervalMs: integer(
      { default: 500, min: 1, max: ONE_DAY_MS },
      'Maximum delay of an export, in milliseconds.',
    ),
    maxQueueSpans: integer({ default: 8_192, min: 1 }, 'Maximum pending spans per thread; more are dropped.'),
    exportTimeoutMs: integer(
      { default: 5_000, min: 1, max: ONE_DAY_MS },
      'Timeout of an export, in milliseconds.',
    ),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type TracingConfig = Static<typeof tracingConfig>
