import { expect, test } from 'vitest'
import { plotCurves } from './plot.ts'

test('each figure of a name is a point of one panel, and one that was withheld is left out', () => {
  const svg = plotCurves('what do <many> cost?', 'workers', [
    { name: 'CPU', unit: 'µs', x: 10, values: [40, 50, 60] },
    { name: 'CPU', unit: 'µs', x: 1_000, values: [80, 90, 100] },
    { name: 'throughput', unit: '1/s', x: 10, values: [], withheld: 'the load client was the bottleneck' },
  ])
  expect(svg.match(/<g /g)).toHaveLength(1)
  expect(svg).toContain('what do &lt;many> cost?')
  expect(svg).toContain('CPU, µs')
  // The medians 50 and 90 of at most 100, at both ends of the logarithmic axis.
  expect(svg).toContain('points="56,91 284,45.4"')
})
