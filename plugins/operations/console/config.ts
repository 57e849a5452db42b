/** Configuration section of the console plugin. */
import { integer, Type } from '#kernel'

export const consoleConfig = Type.Object(
  {
    sessionSecs: integer(
      { default: 43_200, min: 60, max: 2_592_000 },
      'Time from the sign-in to the end of a session, in seconds. It ends earlier with its key or token, and when the gateway stops.',
    ),
  },
  { additionalProperties: false },
)
