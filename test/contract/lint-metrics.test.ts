import { expect, test } from 'vitest'
import { parsePrometheusText } from '#shared'
import { lintMetrics } from '../support/lint-metrics.ts'

const lint = (...lines: string[]) => lintMetrics(parsePrometheusText(`${lines.join('\n')}\n`))

test('findings of the linter', () => {
  expect(lint('# HELP a_total A.', '# TYPE a_total counter', 'a_total 1')).toEqual([])
  expect(lint('# TYPE a counter', 'a 1')).toEqual(['a: no help text', 'a: counters end in _total'])
  expect(lint('# HELP a_gauge_ms_total A.', '# TYPE a_gauge_ms_total gauge', 'a_gauge_ms_total 1')).toEqual([
    'a_gauge_ms_total: only counters end in _total',
    'a_gauge_ms_total: the name contains the type gauge',
    'a_gauge_ms_total: abbreviated unit ms',
  ])
  expect(
    lint('# HELP wait_milliseconds A.', '# TYPE wait_milliseconds gauge', 'wait_milliseconds 1'),
  ).toEqual(['wait_milliseconds: milliseconds is no base unit'])
  expect(lint('# HELP aB A.', '# TYPE aB gauge', 'aB{quantile="1",le="2",cD="3"} 1')).toEqual([
    'aB: label le belongs to histograms',
    'aB: label quantile belongs to summaries',
    'aB: label cD in camel case',
    'aB: name in camel case',
  ])
})
