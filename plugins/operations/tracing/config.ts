/** The tracing section of the configuration file: where spans go and how many. */
import { type Static, Type } from '#kernel'

const ONE_DAY_MS = 86_400_000
/** A header with another name or value could not be sent, and no span would arrive. @source RFC 9110 §5.6.2 */
const TOKEN = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

export const tracingConfig = Type.Object(
  {
    endpoint: Type.String({
      default: 'http://127.0.0.1:4318/v1/traces',
      pattern: '^https?://.+',
      description: 'Where spans are sent: OTLP over HTTP with protobuf bodies.',
    }),
    headers: Type.Record(Type.String({ pattern: TOKEN }), Type.String({ pattern: '^[\\t\\x20-\\x7e]*$' }), {
      additionalProperties: false,
      default: {},
      secret: true,
      description: 'Headers of each export, such as the key of a tracing vendor.',
    }),
    serviceName: Type.String({ default: 'weir', minLength: 1 }),
    sampleRatio: Type.Number({
      minimum: 0,
      maximum: 1,
      default: 1,
      description:
        'Share of requests without a trace of their own that are recorded; a caller’s decision holds.',
    }),
    batchSpans: Type.Integer({ minimum: 1, default: 64, description: 'Spans of one export at most.' }),
    intervalMs: Type.Integer({
      minimum: 1,
      maximum: ONE_DAY_MS,
      default: 500,
      description: 'Longest wait before an export.',
    }),
    maxQueueSpans: Type.Integer({
      minimum: 1,
      default: 8_192,
      description: 'Spans that wait for an export at most, per thread; what comes then is dropped.',
    }),
    exportTimeoutMs: Type.Integer({
      minimum: 1,
      maximum: ONE_DAY_MS,
      default: 5_000,
      description: 'Time limit of one export.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type TracingConfig = Static<typeof tracingConfig>
