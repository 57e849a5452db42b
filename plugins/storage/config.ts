/** The storage section of the configuration file: where records are kept. */
import { Type } from '#kernel'

export const storageConfig = Type.Object(
  {
    dir: Type.String({
      minLength: 1,
      description:
        'Data directory of this gateway process; made when missing, readable by its owner only. One process at a time may use it.',
    }),
  },
  { additionalProperties: false },
)
