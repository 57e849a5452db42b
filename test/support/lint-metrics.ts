/** The rules of `promtool check metrics` that apply to a page of metrics. @source Prometheus, promlint */
import type { PrometheusFamily } from '#shared'

const ABBREVIATIONS = ['s', 'ms', 'us', 'ns', 'sec', 'b', 'kb', 'mb', 'gb', 'tb', 'pb', 'm', 'h', 'd']
const UNIT =
  /^(milli|micro|nano|kilo|mega|giga)?(seconds|bytes|grams|meters|minutes|hours|days|weeks|bits|percent|percentage|fahrenheit)$/
const BASE_UNITS: ReadonlySet<string> = new Set(['seconds', 'bytes', 'grams', 'meters'])
const TYPES = ['gauge', 'counter', 'histogram', 'summary']
const RESERVED = ['_count', '_sum', '_bucket']

/** @returns the findings as `name: problem` */
export function lintMetrics(families: Iterable<PrometheusFamily>): string[] {
  const problems: string[] = []
  for (const family of families) {
    for (const problem of lintFamily(family)) problems.push(`${family.name}: ${problem}`)
  }
  return problems
}

function* lintFamily({ name, type, help, samples }: PrometheusFamily): Generator<string> {
  if (!help) yield 'no help text'
  if (type === 'counter' && !name.endsWith('_total')) yield 'counters end in _total'
  if (type !== 'counter' && name.endsWith('_total')) yield 'only counters end in _total'
  if (type !== 'histogram' && type !== 'summary')
    for (const suffix of RESERVED) if (name.endsWith(suffix)) yield `reserved suffix ${suffix}`
  const labels = new Set(samples.flatMap((sample) => [...sample.labels.keys()]))
  if (type !== 'histogram' && labels.has('le')) yield 'label le belongs to histograms'
  if (type !== 'summary' && labels.has('quantile')) yield 'label quantile belongs to summaries'
  for (const label of labels) if (/[a-z][A-Z]/.test(label)) yield `label ${label} in camel case`
  if (/[a-z][A-Z]/.test(name)) yield 'name in camel case'
  if (name.includes(':')) yield 'colons are for recording rules'
  const words = name.toLowerCase().split('_')
  for (const word of TYPES) if (words.includes(word)) yield `the name contains the type ${word}`
  for (const unit of ABBREVIATIONS) if (words.includes(unit)) yield `abbreviated unit ${unit}`
  for (const word of words) {
    const [, prefix, unit] = UNIT.exec(word) ?? []
    if (unit !== undefined && (prefix !== undefined || !BASE_UNITS.has(unit))) yield `${word} is no base unit`
  }
}
