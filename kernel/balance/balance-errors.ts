/** Errors of picking a worker and of allocating a counter row. */
import type { PickLeg } from '../contracts/policy.ts'
import { NO_PENDING_WORKERS, type PendingWorkers } from '../contracts/worker.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Longest part of a client's model name in an error, characters. */
const MAX_NAME_LENGTH = 128

export const balanceErrors = defineErrors('balance', {
  no_workers: {
    kind: 'unavailable',
    source: 'gateway',
    text: ({ count, problem }: PendingWorkers = NO_PENDING_WORKERS) => {
      if (count === 0) return 'no worker is registered; register one with POST /workers'
      const who = count === 1 ? 'the only worker is' : `all ${count} workers are`
      return `${who} registered, not reachable: ${problem ?? 'it has not been reached yet'}`
    },
  },
  workers_pending: {
    kind: 'unavailable',
    source: 'gateway',
    text: (model: string, { count, problem }: PendingWorkers) =>
      `no worker serves model '${shorten(model)}' yet; ${count} ${count === 1 ? 'worker is' : 'workers are'} still being registered${problem === null ? '' : ` (${problem})`}; try again shortly`,
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
  no_suitable_worker: {
    kind: 'unavailable',
    source: 'client',
    text: (policy: string, model: string) =>
      `policy ${policy} found no worker for this request to model '${shorten(model)}': the worker that the request selects is not available`,
  },
  worker_overload_protection_shed: {
    kind: 'unavailable',
    source: 'worker',
    text: (model: string) =>
      `every worker that serves model '${shorten(model)}' and could take this request is overloaded; try again later`,
  },
  server_selection_failed: {
    kind: 'unavailable',
    source: 'worker',
    retry: 'before-first-byte',
    text: (missing: PickLeg, model: string) =>
      missing === 'whole'
        ? `only pairs of prefill and decode workers serve model '${shorten(model)}', and they take no request of this kind`
        : `no ${missing} worker that serves model '${shorten(model)}' is available; a pair needs one`,
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
    text: (name: string, known: readonly string[], setting?: string) =>
      `${setting === undefined ? '' : `${setting}: `}there is no load balancing policy '${name}'; known are ${known.join(', ')}`,
  },
  policy_not_allowed: {
    kind: 'internal',
    source: 'gateway',
    text: (setting: string, name: string, leg: PickLeg) =>
      `${setting} cannot be '${name}': ${name} does not work for ${leg} workers`,
  },
})

function shorten(name: string): string {
  return name.length <= MAX_NAME_LENGTH ? name : `${name.slice(0, MAX_NAME_LENGTH)}…`
}
