/** Errors of the health routes. */
import { defineErrors } from '#kernel'

export const healthErrors = defineErrors('health', {
  no_workers: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'no ready worker supports /health_generate',
  },
  probe_rejected: {
    kind: 'unavailable',
    source: 'gateway',
    text: (status: number) => `the request to the worker ended with status ${status} in the gateway`,
  },
  no_engine_metrics: {
    kind: 'unavailable',
    source: 'worker',
    text: (workerCount: number) =>
      workerCount === 0
        ? 'no registered worker exposes metrics'
        : `none of ${workerCount} workers returned valid metrics`,
  },
})
