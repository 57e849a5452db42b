import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type PrometheusFamily,
  type PrometheusSample,
  parsePrometheusText,
  printPrometheusText,
} from './prometheus-text.ts'

const labelName = fc.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_]{0,8}$/)
const metricName = fc.stringMatching(/^[a-zA-Z_:][a-zA-Z0-9_:]{0,12}x$/)
const text = fc.string({ unit: fc.constantFrom('a', ' ', '"', '\\', '\n', '{', '}', ',', '=', 'ü', '#') })
const value = fc.oneof(
  fc
    .double()
    .map(String)
    .filter((number) => !/infinity/i.test(number)),
  fc.constantFrom('NaN', '+Inf', '-Inf', '0', '1e+06', '.5', '12.'),
)
const timestamp = fc.option(fc.integer().map(String))

const family: fc.Arbitrary<PrometheusFamily> = fc
  .record({
    name: metricName,
    type: fc.option(fc.constantFrom('counter', 'gauge', 'untyped', 'histogram')),
    help: fc.option(text.map((help) => help.trim())),
    samples: fc.array(
      fc.record({ labels: fc.dictionary(labelName, text, { noNullPrototype: true }), value, timestamp }),
      { minLength: 1, maxLength: 4 },
    ),
  })
  .map(({ name, type, help, samples }) => ({
    name,
    type,
    help,
    samples: samples.map(
      (sample): PrometheusSample => ({ ...sample, name, labels: new Map(Object.entries(sample.labels)) }),
    ),
  }))
const written = (families: PrometheusFamily[]) => {
  const steps = printPrometheusText(families)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}
const exposition = fc.uniqueArray(family, { selector: ({ name }) => name, maxLength: 5 })

test('encoded text parses to the same families', () => {
  fc.assert(
    fc.property(exposition, (families) => {
      expect(parsePrometheusText(written(families))).toEqual(families)
    }),
  )
})

test('any text is parsed or rejected with a line number', () => {
  const line = fc.oneof(fc.string(), fc.constantFrom('a{b="c"} 1', 'a 1 2', '# TYPE a counter', 'a{b="\\'))
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      try {
        parsePrometheusText(lines.join('\n'))
      } catch (error) {
        expect(String(error)).toMatch(/PrometheusSyntaxError: line \d+/)
      }
    }),
  )
})

test('a histogram keeps its buckets, sum and count in one family', () => {
  const families = parsePrometheusText(`
# HELP lat Latency.
# TYPE lat histogram
lat_bucket{le="0.1"} 1
lat_bucket{le="+Inf"} 2
lat_sum 0.4
lat_count 2
other_count 5
`)
  expect(families.map(({ name, samples }) => [name, samples.length])).toEqual([
    ['lat', 4],
    ['other_count', 1],
  ])
})

test('blanks, trailing commas, comments and carriage returns are accepted', () => {
  const families = parsePrometheusText('# hello\r\n#\r\n a { b = "x" , } 1 \r\n# EOF\r\n')
  expect(families).toEqual([
    {
      name: 'a',
      type: null,
      help: null,
      samples: [{ name: 'a', labels: new Map([['b', 'x']]), value: '1', timestamp: null }],
    },
  ])
})

test('a line separator that is not one in the format is part of the HELP text', () => {
  const [family] = parsePrometheusText('# HELP a  x\u2028y\na 1\n')
  expect(family.help).toBe('x\u2028y')
})

test('a type that scrapers would reject the page for is dropped', () => {
  expect(parsePrometheusText('# TYPE a gauge b\na 1\n')[0].type).toBeNull()
})

test.each([
  '<html>',
  'a',
  'a{b="c" 1',
  'a{b=c} 1',
  'a{b="c"} x',
  'a 1 2 3',
  'a 1 1.5',
  'a{b="1",b="2"} 1',
  'a{b="c',
])('%j is refused', (line) => {
  expect(() => parsePrometheusText(`ok 1\n${line}\n`)).toThrow(/line 2/)
})

test('too many labels are rejected', () => {
  const labelled = (count: number) => `a{${Array.from({ length: count }, (_, i) => `l${i}="1"`).join()}} 1\n`
  expect(parsePrometheusText(labelled(64))[0].samples[0].labels.size).toBe(64)
  expect(() => parsePrometheusText(labelled(65))).toThrow(/line 1: more than 64 labels/)
})

test('no families encode to an empty text', () => {
  expect(written([])).toBe('')
})
