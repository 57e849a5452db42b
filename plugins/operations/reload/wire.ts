/** Payloads of the reload route. */
import { Type } from '#kernel'

export const AppliedReply = Type.Object({
  applied: Type.Array(Type.String(), { description: 'Paths of changed settings that were applied.' }),
  needs_restart: Type.Array(Type.String(), {
    description: 'Paths of changed settings that require a restart.',
  }),
})
