/** Errors of history that are nobody's mistake; what callers do wrong comes back as a problem instead. */
import { defineErrors } from '#kernel'

export const historyErrors = defineErrors('history', {
  history_contended: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'too many changes of one record at the same time; try again',
  },
  history_store_missing: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'the plugin history needs a store: enable the plugin storage or the plugin postgres',
  },
})
