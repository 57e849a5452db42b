/** Settings of the grpc plugin. */
import { type Static, Type } from '#kernel'

export const grpcConfig = Type.Object(
  {
    keepaliveMs: Type.Integer({
      minimum: 10_000,
      default: 30_000,
      description: 'Interval of keep-alive pings on a connection, milliseconds.',
    }),
    keepaliveTimeoutMs: Type.Integer({
      minimum: 100,
      default: 10_000,
      description: 'Timeout of a keep-alive ping, after which the connection is closed, milliseconds.',
    }),
    maxMessageBytes: Type.Integer({
      minimum: 1_048_576,
      default: 33_554_432,
      description:
        'Longest accepted message of an engine, bytes. Responses are limited further by what max_tokens and the log probabilities of the request need.',
    }),
    streamWindowBytes: Type.Integer({
      minimum: 65_535,
      maximum: 2_147_483_647,
      default: 16_777_216,
      description: 'Flow-control window of a stream: bytes that an engine may send ahead of a slow reader.',
    }),
    maxReconnectWaitMs: Type.Integer({
      minimum: 100,
      default: 5_000,
      description: 'Longest delay before reconnecting, milliseconds.',
    }),
    caFile: Type.Union([Type.Null(), Type.String({ minLength: 1 })], {
      default: null,
      reads: 'use',
      description:
        'PEM file of the certificate authorities for grpcs:// URLs; null uses those of the system.',
    }),
  },
  { additionalProperties: false },
)
export type GrpcConfig = Static<typeof grpcConfig>
