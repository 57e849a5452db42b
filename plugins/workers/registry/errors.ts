/** Errors of the worker routes and of background jobs. */
import { defineErrors, shortValue } from '#kernel'

export const workerErrors = defineErrors('workers', {
  worker_not_saved: {
    kind: 'unavailable',
    source: 'gateway',
    text: (url: string, problem: string) =>
      `the change of worker ${url} was not made, because it could not be saved: ${problem}`,
  },
  discovery_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (url: string, problem: string) => `cannot describe ${url}: ${problem}`,
  },
  worker_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `no worker has id ${id}`,
  },
  worker_already_exists: {
    kind: 'conflict',
    source: 'client',
    text: (url: string, id: string) => `worker ${url} is already registered with id ${id}`,
  },
  invalid_worker_url: {
    kind: 'bad_request',
    source: 'client',
    text: (problem: string) => `the worker url ${problem}`,
  },
  invalid_worker_id: {
    kind: 'bad_request',
    source: 'client',
    text: (got: string) => `the worker id in the path must be a UUID (got ${shortValue(got)})`,
  },
  duplicate_field: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, alias: string) => `'${alias}' is another name of '${field}'; send one of them`,
  },
  invalid_field: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `field '${field}' ${problem}`,
  },
  invalid_resilience: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `field '${field}' ${problem}`,
  },
  replace_unsupported: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'workers cannot be replaced while dpAware is on; delete the worker and register it again',
  },
  url_change_unsupported: {
    kind: 'bad_request',
    source: 'client',
    text: (url: string) =>
      `the url of a worker cannot change from ${url}; delete the worker and register the new url`,
  },
  job_queue_full: {
    kind: 'unavailable',
    source: 'gateway',
    text: (queued: number) => `the queue of worker changes is full (${queued} waiting); retry in 1 s`,
  },
  worker_limit_reached: {
    kind: 'unavailable',
    source: 'gateway',
    text: (max: number) =>
      `the limit of ${max} workers is reached; delete a worker or raise kernel.limits.maxWorkers`,
  },
  worker_changed: {
    kind: 'conflict',
    source: 'client',
    text: () => 'the worker was changed or deleted by another request while this replacement was prepared',
  },
  transport_missing: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (scheme: string, plugin: string | null) =>
      `this gateway has no transport for ${scheme} workers; ` +
      (plugin === null ? 'no enabled plugin provides one' : `enable plugin ${plugin}`),
  },
  job_timed_out: {
    kind: 'timeout',
    source: 'gateway',
    text: (seconds: number) => `the change was not finished within ${seconds} s`,
  },
  invalid_workers_config: {
    kind: 'internal',
    source: 'gateway',
    text: (path: string, problem: string) => `plugins.workers.${path} ${problem}`,
  },
})
