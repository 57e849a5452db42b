/** What can go wrong while a worker is chosen or a row of the counters is taken. */
import { defineErrors } from '../errors/define-errors.ts'
import type { ErrorOptions } from '../errors/gateway-error.ts'

/** Longest piece of a client's model name that an error repeats, in characters. */
const MAX_NAME_LENGTH = 128

/** @source routes facts 4.9, API spec 7.1 */
export const balanceErrors = defineErrors('balance', {
  no_workers: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'no worker is registered; register one with POST /workers',
  },
  model_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (model: string) =>
      `no worker serves model '${shorten(model)}'; GET /v1/models lists the models that are served`,
  },
  no_available_workers: {
    kind: 'unavailable',
    source: 'worker',
    retry: 'before-first-byte',
    text: (model: string) => `no worker that serves model '${shorten(model)}' is ready; try again shortly`,
  },
  worker_limit: {
    kind: 'unavailable',
    source: 'gateway',
    text: (maxWorkers: number) =>
      `all ${maxWorkers} worker rows are taken; remove a worker or raise kernel.limits.maxWorkers`,
  },
  unknown_policy: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string, known: readonly string[]) =>
      `there is no load balancing policy '${name}'; known are ${known.join(', ')}`,
  },
})

/** Workers come back within health check intervals, so clients may ask again after one second. */
export const RETRY_SOON: ErrorOptions = Object.freeze({ headers: Object.freeze(['retry-after', '1']) })

function shorten(name: string): string {
  return name.length <= MAX_NAME_LENGTH ? name : `${name.slice(0, MAX_NAME_LENGTH)}…`
}
