/** Errors of the health routes. */
import { defineErrors } from '#kernel'

export const healthErrors = defineErrors('health', {
  no_workers: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'no worker that generates on its own is ready',
  },
  no_engine_metrics: {
    kind: 'unavailable',
    source: 'worker',
    text: (workerCount: number) =>
      workerCount === 0
        ? 'no worker that has metrics is registered'
        : `none of ${workerCount} workers gave readable metrics`,
  },
})
