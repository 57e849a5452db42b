/** Errors of the debug plugin. */
import { defineErrors } from '#kernel'

export const debugErrors = defineErrors('debug', {
  invalid_query: {
    kind: 'bad_request',
    source: 'client',
    text: (param: string, expected: string, got: string) =>
      `${param} must be ${expected} (got ${JSON.stringify(got.slice(0, 50))})`,
  },
  request_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) =>
      `no record of request ${id.slice(0, 200)}; only recent requests are kept, see plugins.debug`,
  },
})
