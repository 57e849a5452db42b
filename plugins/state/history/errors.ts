/** Errors of the history plugin; invalid calls of the contract return a problem instead. */
import { defineErrors } from '#kernel'

export const historyErrors = defineErrors('history', {
  history_contended: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'too many concurrent changes of the same record; retry',
  },
  invalid_history_file: {
    kind: 'bad_request',
    source: 'client',
    text: (line: number, problem: string) => `line ${line} of the history file is invalid: ${problem}`,
  },
  history_store_missing: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the history plugin requires a store: enable the storage or the postgres plugin',
  },
})
