/** Settings of the grpc plugin. */
import { type Static, Type } from '#kernel'

export const grpcConfig = Type.Object(
  {
    keepaliveMs: Type.Integer({
      minimum: 10_000,
      default: 30_000,
      description: 'Silence on a connection after which it is pinged, in milliseconds.',
    }),
    keepaliveTimeoutMs: Type.Integer({
      minimum: 100,
      default: 10_000,
      description: 'A ping that is not answered within this many milliseconds ends the connection.',
    }),
    maxMessageBytes: Type.Integer({
      minimum: 1_048_576,
      default: 268_435_456,
      description: 'Longest message of an engine that is read, in bytes.',
    }),
    streamWindowBytes: Type.Integer({
      minimum: 65_535,
      maximum: 2_147_483_647,
      default: 16_777_216,
      description: 'What an engine may send ahead of a slow reader, in bytes.',
    }),
    maxReconnectWaitMs: Type.Integer({
      minimum: 100,
      default: 5_000,
      description: 'Longest wait before a lost connection is tried again, in milliseconds.',
    }),
    caFile: Type.Union([Type.Null(), Type.String({ minLength: 1 })], {
      default: null,
      description:
        'PEM file of the authorities that sign workers of grpcs:// URLs; null takes those of the system.',
    }),
  },
  { additionalProperties: false },
)
export type GrpcConfig = Static<typeof grpcConfig>
