/** Errors of the usage plugin. */
import { defineErrors } from '#kernel'

export const usageErrors = defineErrors('usage', {
  budget_exceeded: {
    kind: 'rate_limited',
    source: 'client',
    text: (limit: string, period: string, retrySec: number) =>
      `the budget of ${limit} per ${period} is used up; retry in ${retrySec} s`,
  },
  usage_not_recorded: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the usage of the request could not be stored; retry later',
  },
  usage_report_too_large: {
    kind: 'bad_request',
    source: 'client',
    text: (rows: number) => `the report covers more than ${rows} records; select fewer days or one tenant`,
  },
})
