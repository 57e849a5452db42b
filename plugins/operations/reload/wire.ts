/** Payloads of the reload route. */
import { Type } from '#kernel'

export const AppliedReply = Type.Object({
  applied: Type.Array(Type.String(), { description: 'Settings that changed and hold now, by path.' }),
  needs_restart: Type.Array(Type.String(), {
    description: 'Settings that changed in the file and hold after a restart only.',
  }),
})
