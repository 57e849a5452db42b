/** Why an HTTP worker cannot be described. */
import { defineErrors } from '#kernel'

export const httpWorkerErrors = defineErrors('http-workers', {
  worker_unreachable: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, seconds: number, problem: string) =>
      `${url} did not become healthy within ${seconds} s; last answer: ${problem}`,
  },
  model_discovery_failed: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, problem: string) => `${url} did not tell its models: ${problem}`,
  },
  rank_discovery_failed: {
    kind: 'unavailable',
    source: 'worker',
    text: (url: string, problem: string) => `${url} did not tell its data-parallel ranks: ${problem}`,
  },
})
