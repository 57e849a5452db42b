/** Configuration section of the storage plugin. */
import { integer, Type } from '#kernel'

export const storageConfig = Type.Object(
  {
    dir: Type.String({
      minLength: 1,
      default: 'weir-data',
      description:
        'Data directory, created with access for the owner only. Relative to the working directory. Can be used by one process at a time.',
    }),
    maxRecordBytes: integer(
      { default: 64 * 1024 * 1024, min: 1_024 },
      'Maximum size of a record in bytes of JSON; larger ones are rejected with 413.',
    ),
    maxWaitingBytes: integer(
      { default: 64 * 1024 * 1024, min: 1_024 },
      'Maximum bytes of pending writes per thread; more are rejected with 503.',
    ),
    sweepIntervalMs: integer(
      { default: 30_000, min: 100 },
      'Interval at which expired records are deleted, in milliseconds.',
    ),
  },
  { additionalProperties: false },
)
