/** The legacy-http section of the configuration file: where it listens, and its patience with clients. */
import { type Static, Type } from '#kernel'

export const legacyHttpConfig = Type.Object(
  {
    host: Type.String({ default: '127.0.0.1', description: 'Address to listen on.' }),
    port: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 30_080,
      description: 'Port of the listener.',
    }),
    idleMs: Type.Integer({
      minimum: 1,
      maximum: 86_400_000,
      default: 75_000,
      description: 'A connection on which nothing is asked is closed after this, in milliseconds.',
    }),
    headMs: Type.Integer({
      minimum: 1,
      maximum: 86_400_000,
      default: 60_000,
      description: 'Time for a whole request head, in milliseconds; then 408.',
    }),
    maxHeaderBytes: Type.Integer({
      minimum: 1024,
      maximum: 65_536,
      default: 32_768,
      description:
        'Larger request heads get 431, in bytes. Those beyond kernel.http.maxHeaderBytes do anyway.',
    }),
    maxConnections: Type.Integer({
      minimum: 1,
      maximum: 100_000,
      default: 1_024,
      description: 'Connections beyond these are closed at once.',
    }),
  },
  { additionalProperties: false },
)

export type LegacyHttpConfig = Static<typeof legacyHttpConfig>
