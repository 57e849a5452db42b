/** Merges the metrics of several threads. */

import type { FamilySnapshot, HistogramSeries, MetricsSnapshot } from '../contracts/metric.ts'

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
  if (first.type === 'histogram') {
    const all = families.flatMap((family) => (family.type === 'histogram' ? family.series : []))
    return { ...first, series: mergeSeries(all, addHistograms) }
  }
  const all = families.flatMap((family) => (family.type === 'histogram' ? [] : family.series))
  return { ...first, series: mergeSeries(all, (a, b) => ({ labels: a.labels, value: a.value + b.value })) }
}

function mergeSeries<Series extends { readonly labels: readonly string[] }>(
  all: readonly Series[],
  add: (a: Series, b: Series) => Series,
): Series[] {
  const byLabels = new Map<string, Series>()
  for (const series of all) {
    const key = labelKey(series.labels)
    const known = byLabels.get(key)
    byLabels.set(key, known === undefined ? series : add(known, series))
  }
  return [...byLabels.values()]
}

function addHistograms(a: HistogramSeries, b: HistogramSeries): HistogramSeries {
  return {
    labels: a.labels,
    buckets: a.buckets.map((count, index) => count + b.buckets[index]),
    sum: a.sum + b.sum,
    count: a.count + b.count,
  }
}
