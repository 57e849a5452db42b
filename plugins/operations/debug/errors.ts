/** Errors of the debug plugin. */
import { defineErrors } from '#kernel'

export const debugErrors = defineErrors('debug', {
  request_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) =>
      `no record of request ${id.slice(0, 200)}; only recent requests are kept, see plugins.debug`,
  },
})
