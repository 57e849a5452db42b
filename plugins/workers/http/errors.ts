/** Errors of HTTP workers. */
import { defineErrors } from '#kernel'

export const httpWorkerErrors = defineErrors('http-workers', {
  worker_unreachable: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, seconds: number, problem: string) =>
      `worker ${url} did not become healthy within ${seconds} s; last probe: ${problem}`,
  },
  model_discovery_failed: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, problem: string) => `the models of worker ${url} could not be discovered: ${problem}`,
  },
  rank_discovery_failed: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, problem: string) =>
      `the data-parallel ranks of worker ${url} could not be discovered: ${problem}`,
  },
  request_not_supported: {
    kind: 'bad_request',
    source: 'worker',
    text: (message: string) => message,
  },
  worker_failed: {
    kind: 'unavailable',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker cannot serve any request until it is restarted',
  },
})
