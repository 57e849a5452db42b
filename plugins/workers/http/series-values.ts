/** The numbers of a metrics page by metric name; which series they are of is of no interest here. */
import type { PrometheusFamily } from '#shared'

/** Values of all series of a metric, by the metric's name. */
export type SeriesValues = ReadonlyMap<string, readonly number[]>

/** NaN and infinities are left out. */
export function toSeriesValues(families: readonly PrometheusFamily[]): SeriesValues {
  const byName = new Map<string, number[]>()
  for (const sample of families.flatMap((family) => family.samples)) {
    const value = Number(sample.value)
    if (!Number.isFinite(value)) continue
    const values = byName.get(sample.name)
    if (values === undefined) byName.set(sample.name, [value])
    else values.push(value)
  }
  return byName
}

/** Sum over the series of the first of these metrics that there is; 0 when there is none. */
export function sumOf(series: SeriesValues, names: readonly string[]): number {
  return (valuesOf(series, names) ?? []).reduce((sum, value) => sum + value, 0)
}

/** Mean over the series of the first of these metrics that there is; null when there is none. */
export function meanOf(series: SeriesValues, names: readonly string[]): number | null {
  const values = valuesOf(series, names)
  return values === undefined ? null : sumOf(series, names) / values.length
}

function valuesOf(series: SeriesValues, names: readonly string[]): readonly number[] | undefined {
  return names.map((name) => series.get(name)).find((values) => values !== undefined)
}
