/** Configuration section of the keys plugin. */
import { integer, type Static, Type } from '#kernel'

export const keysConfig = Type.Object(
  {
    refreshMs: integer(
      { default: 5_000, min: 100, max: 600_000 },
      'Interval for reading the keys from a store that several gateways share, in milliseconds: the time after which a key that another gateway created or revoked is noticed here. Also the interval for retries while a store is unavailable.',
    ),
    maxStaleMs: integer(
      { default: 3_600_000, min: 1_000 },
      'Time for which the keys read last stay valid while a shared store is unavailable, in milliseconds. Then they are rejected with 503.',
    ),
    maxKeys: integer({ default: 10_000, min: 1, max: 100_000 }, 'Maximum number of stored keys.'),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type KeysConfig = Static<typeof keysConfig>
