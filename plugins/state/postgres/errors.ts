/** Errors of the database at startup. */
import { defineErrors } from '#kernel'

export const postgresErrors = defineErrors('postgres', {
  database_unreachable: {
    kind: 'internal',
    source: 'gateway',
    text: (problem: string) => `cannot reach the PostgreSQL database of plugins.postgres.url: ${problem}`,
  },
  database_required: {
    kind: 'internal',
    source: 'gateway',
    text: (plugins: readonly string[]) =>
      `cannot reach the PostgreSQL database of plugins.postgres.url, which ${plugins.join(', ')} cannot start without; start the database first`,
  },
  database_unsuitable: {
    kind: 'internal',
    source: 'gateway',
    text: (problem: string) => `the PostgreSQL database of plugins.postgres.url cannot be used: ${problem}`,
  },
})
