/** Merges the metrics of several threads. */

import type { FamilySnapshot, HistogramSeries, MetricsSnapshot, ValueSeries } from '../contracts/metric.ts'

export function labelKey(values: readonly string[]): string {
  return values.length === 1 ? values[0] : values.join('\u0000')
}

/**
 * Sums counters, gauges and histograms of several threads, child by child. Families keep the order of their first
 * appearance. A family whose type, labels or bounds differ from the first of its name is dropped.
 */
export function mergeSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const byName = new Map<string, FamilySnapshot[]>()
  for (const snapshot of snapshots) {
    for (const family of snapshot) {
      const known = byName.get(family.name)
      if (known === undefined) byName.set(family.name, [family])
      else if (isSameShape(known[0], family)) known.push(family)
    }
  }
  return [...byName.values()].map(mergeFamily)
}

/** The values to keep of a dead thread: counters and histograms. */
export function withoutGauges(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter((family) => family.type !== 'gauge')
}

function isSameShape(a: FamilySnapshot, b: FamilySnapshot): boolean {
  if (a.type !== b.type || labelKey(a.labelNames) !== labelKey(b.labelNames)) return false
  if (a.type !== 'histogram' || b.type !== 'histogram') return true
  return a.bounds.length === b.bounds.length && a.bounds.every((bound, index) => bound === b.bounds[index])
}

function mergeFamily(families: readonly FamilySnapshot[]): FamilySnapshot {
  const first = families[0]
  if (families.length === 1) return first
  const byLabels = new Map<string, Series>()
  for (const family of families)
    for (const series of family.series) {
      const key = labelKey(series.labels)
      const known = byLabels.get(key)
      byLabels.set(key, known === undefined ? series : sumOf(known, series))
    }
  return { ...first, series: [...byLabels.values()] } as FamilySnapshot
}

type Series = ValueSeries | HistogramSeries

/** @param b of the same family as `a` */
function sumOf(a: Series, b: Series): Series {
  if ('value' in a) return { labels: a.labels, value: a.value + (b as ValueSeries).value }
  const { buckets, sum, count } = b as HistogramSeries
  return {
    labels: a.labels,
    buckets: a.buckets.map((bucket, index) => bucket + buckets[index]),
    sum: a.sum + sum,
    count: a.count + count,
  }
}
