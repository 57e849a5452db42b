/** Errors of the limits plugin. */
import { defineErrors } from '#kernel'

export const limitsErrors = defineErrors('limits', {
  queue_full: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (limit: number, queueSize: number) =>
      `the concurrency limit of ${limit} requests is reached and the queue of ${queueSize} is full; retry later`,
  },
  queue_timeout: {
    kind: 'timeout',
    source: 'gateway',
    text: (waitedMs: number) => `the request waited ${waitedMs} ms in the queue, its maximum; retry later`,
  },
  rate_limit_exceeded: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (perSecond: number, retrySec: number) =>
      `the limit of ${perSecond} requests per second is exceeded; retry in ${retrySec} s`,
  },
  tenant_rate_limit_exceeded: {
    kind: 'rate_limited',
    source: 'client',
    text: (what: string) => what,
  },
  tenant_concurrency_exceeded: {
    kind: 'rate_limited',
    source: 'client',
    text: (limit: number) =>
      `the limit of ${limit} running requests of this tenant is reached; retry when one of them has ended`,
  },
  shared_limit_busy: {
    kind: 'rate_limited',
    source: 'gateway',
    text: () => 'other requests take what a limit of all gateways grants; retry in 1 s',
  },
  scheduler_queue_full: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (priority: string, queueSize: number) =>
      `the queue of priority ${priority} is full (${queueSize} requests); retry later`,
  },
  scheduler_queue_timeout: {
    kind: 'timeout',
    source: 'gateway',
    text: (priority: string, waitedMs: number) =>
      `the request waited ${waitedMs} ms in the queue of priority ${priority}, its maximum; retry later`,
  },
  scheduler_preempted: {
    kind: 'unavailable',
    source: 'gateway',
    text: (by: string) =>
      `the request was preempted by a request of priority ${by} before its first byte; retry`,
  },
  burst_not_shared: {
    kind: 'bad_request',
    source: 'client',
    text: (burst: number) =>
      `field 'burst' of plugins.limits must be 0 (got ${burst}): limits that gateways share are granted for whole seconds; or set plugins.mesh.shares.limits to false`,
  },
  invalid_limits: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `field '${field}' ${problem}`,
  },
})
