/** What a worker's answer can fail with beside its status, and what its format has no words for. */
import { defineErrors } from '#kernel'

export const answerErrors = defineErrors('answer', {
  unsupported_by_worker: {
    kind: 'bad_request',
    source: 'client',
    text: (what: string) => `the workers of this model have no way to be asked for ${what}`,
  },
  worker_stream_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (said: string) => `the worker's answer failed: ${said}`,
  },
  worker_refused: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (said: string) => said,
  },
  worker_answer_too_long: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (most: number) => `the worker's answer is longer than ${most} bytes`,
  },
})
