/** What may go wrong when somebody asks about a past request. */
import { defineErrors } from '#kernel'

export const debugErrors = defineErrors('debug', {
  request_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) =>
      `no request with id ${id.slice(0, 200)} is remembered; only the last ones are, for a limited time (plugins.debug)`,
  },
})
