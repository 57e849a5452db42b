/** The text exposition, parsed by a strict parser of format version 0.0.4. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ThreadMetrics } from '../../../kernel/observe/metrics.ts'
import { mergeSnapshots } from '../../../kernel/observe/metrics-snapshot.ts'
import { PROMETHEUS_CONTENT_TYPE, renderPrometheus } from './prometheus.ts'

interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

interface Parsed {
  types: Map<string, string>
  samples: Sample[]
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$/s
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y

/** Throws on any violation of the format: order, duplicates, escapes, numbers. */
function parseExposition(text: string): Parsed {
  if (!text.endsWith('\n')) throw new Error('the last line has no line feed')
  const parsed: Parsed = { types: new Map(), samples: [] }
  const seen = new Set<string>()
  let family = ''
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '') continue
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/s.exec(line)
    if (comment?.[1] === 'TYPE') {
      if (parsed.types.has(comment[2])) throw new Error(`two types of ${comment[2]}`)
      parsed.types.set(comment[2], comment[3])
      family = comment[2]
    }
    if (comment !== null) continue
    const sample = parseSample(line)
    const owner = sample.name.replace(/_(bucket|sum|count)$/, '')
    if (sample.name !== family && owner !== family) throw new Error(`${sample.name} outside of its family`)
    const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`
    if (seen.has(key)) throw new Error(`twice: ${line}`)
    seen.add(key)
    parsed.samples.push(sample)
  }
  return parsed
}

function parseSample(line: string): Sample {
  const match = SAMPLE.exec(line)
  if (match === null) throw new Error(`not a sample: ${line}`)
  const [, name, labelText = '', number] = match
  if (!/^(\+Inf|-Inf|NaN|-?[0-9.]+(e[+-]?[0-9]+)?)$/.test(number)) throw new Error(`not a number: ${number}`)
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < labelText.length) {
    const label = LABEL.exec(labelText)
    if (label === null) throw new Error(`not labels: ${labelText}`)
    labels[label[1]] = label[2].replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char))
  }
  return { name, labels, value: number === '+Inf' ? Infinity : Number(number) }
}

test('the content type is that of the text format', () => {
  expect(PROMETHEUS_CONTENT_TYPE).toBe('text/plain; version=0.0.4; charset=utf-8')
})

test('threads are summed and every family has its type', async () => {
  const snapshots = [1, 2].map((thread) => {
    const metrics = new ThreadMetrics()
    metrics
      .counter({ name: 'c_total', help: 'Line one\nand \\ two.', labels: ['a'] })
      .labels('x')
      .inc(thread)
    metrics.gauge({ name: 'g', help: 'G.' }).labels().value = -thread / 4
    metrics.histogram({ name: 'h_seconds', help: 'H.', labels: ['a'] })
    return metrics.snapshot()
  })
  const { types, samples } = parseExposition(await renderPrometheus(mergeSnapshots(snapshots)))
  expect([...types]).toEqual([
    ['c_total', 'counter'],
    ['g', 'gauge'],
    ['h_seconds', 'histogram'],
  ])
  expect(samples).toEqual([
    { name: 'c_total', labels: { a: 'x' }, value: 3 },
    { name: 'g', labels: {}, value: -0.75 },
  ])
})

test('histogram buckets are cumulative and end with +Inf equal to the count', async () => {
  const metrics = new ThreadMetrics()
  const family = metrics.histogram({ name: 'h', help: 'H.', labels: ['a'], buckets: [0.5, 1, 2] })
  for (const value of [0.1, 0.5, 0.7, 5, 6]) family.labels('x').observe(value)
  family.labels('y').observe(1.5)
  const { samples } = parseExposition(
    await renderPrometheus(mergeSnapshots([metrics.snapshot(), metrics.snapshot()])),
  )
  const buckets = samples.filter(({ name, labels }) => name === 'h_bucket' && labels.a === 'x')
  expect(buckets.map(({ labels, value }) => [labels.le, value])).toEqual([
    ['0.5', 4],
    ['1', 6],
    ['2', 6],
    ['+Inf', 10],
  ])
  const rest = samples.filter(({ name, labels }) => name !== 'h_bucket' && labels.a === 'x')
  expect(rest.map(({ name }) => name)).toEqual(['h_sum', 'h_count'])
  expect(rest[0].value).toBeCloseTo(24.6)
  expect(rest[1].value).toBe(10)
  expect(samples.filter(({ labels }) => labels.a === 'y').at(-1)).toMatchObject({ name: 'h_count', value: 2 })
})

test('any label values are preserved, each as its own series', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary' }), fc.string()), {
        selector: (pair) => JSON.stringify(pair),
        maxLength: 20,
      }),
      async (pairs) => {
        const printable = pairs.filter((pair) => !pair.some((value) => value.includes('\u0000')))
        const metrics = new ThreadMetrics()
        const family = metrics.counter({ name: 'c_total', help: 'C.', labels: ['a', 'b'] })
        for (const [a, b] of printable) family.labels(a, b).inc()
        const { samples } = parseExposition(await renderPrometheus(metrics.snapshot()))
        expect(samples.map(({ labels, value }) => [labels.a, labels.b, value])).toEqual(
          printable.map(([a, b]) => [a, b, 1]),
        )
      },
    ),
  )
})

test('without metrics the text is empty', async () => {
  expect((await renderPrometheus([])).trim()).toBe('')
})
