/** Errors of history; what callers of the contract do wrong comes back as a problem instead. */
import { defineErrors } from '#kernel'

export const historyErrors = defineErrors('history', {
  history_contended: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'too many changes of one record at the same time; try again',
  },
  invalid_history_file: {
    kind: 'bad_request',
    source: 'client',
    text: (line: number, problem: string) =>
      `line ${line} of the history file cannot be imported: ${problem}`,
  },
  history_store_missing: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the plugin history needs a store: enable the plugin storage or the plugin postgres',
  },
})
