/** The storage section of the configuration file: where records are kept, and how much may wait for the disk. */
import { Type } from '#kernel'

export const storageConfig = Type.Object(
  {
    dir: Type.String({
      minLength: 1,
      default: 'weir-data',
      description:
        'Data directory of this gateway process, created if it does not exist, readable by its owner only. A relative path starts at the working directory. One process at a time may use it.',
    }),
    maxRecordBytes: Type.Integer({
      minimum: 1_024,
      default: 64 * 1024 * 1024,
      description: 'Largest record, in bytes of JSON. A larger one is refused with 413.',
    }),
    maxWaitingBytes: Type.Integer({
      minimum: 1_024,
      default: 64 * 1024 * 1024,
      description:
        'What may wait for the disk on each thread, in bytes; beyond it writes are refused with 503.',
    }),
    sweepIntervalMs: Type.Integer({
      minimum: 100,
      default: 30_000,
      description: 'Pause between two sweeps that remove expired records, in milliseconds.',
    }),
  },
  { additionalProperties: false },
)
