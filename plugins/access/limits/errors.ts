/** Errors of admission: refused for now, with a time to come back, and refused settings. */
import { defineErrors, type ErrorOptions } from '#kernel'

export const limitsErrors = defineErrors('limits', {
  queue_full: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (limit: number, queueSize: number) =>
      `${limit} requests run and ${queueSize === 0 ? 'none may wait' : `${queueSize} wait`}; try again later`,
  },
  queue_timeout: {
    kind: 'timeout',
    source: 'gateway',
    text: (waitedMs: number) => `no request ended within ${waitedMs} ms to make room for this one; try again`,
  },
  rate_limit_exceeded: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (perSecond: number, retrySec: number) =>
      `more than ${perSecond} requests a second; try again in ${retrySec} s`,
  },
  tenant_rate_limit_exceeded: {
    kind: 'rate_limited',
    source: 'client',
    text: (what: string) => what,
  },
  scheduler_queue_full: {
    kind: 'rate_limited',
    source: 'gateway',
    text: (priority: string, queueSize: number) =>
      `${queueSize} requests of priority ${priority} wait already; try again later`,
  },
  scheduler_queue_timeout: {
    kind: 'timeout',
    source: 'gateway',
    text: (priority: string, waitedMs: number) =>
      `no room for a request of priority ${priority} within ${waitedMs} ms; try again`,
  },
  scheduler_preempted: {
    kind: 'unavailable',
    source: 'gateway',
    text: (by: string) => `gave way to a request of priority ${by} before its first byte; try again`,
  },
  invalid_limits: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `field '${field}' ${problem}`,
  },
})

/** The reply says when to come back. @param seconds whole, at least 1 */
export function retryAfter(seconds: number): ErrorOptions {
  return { headers: ['retry-after', String(seconds)] }
}
