/** Reads samples from a page in the Prometheus text format; labels and timestamps are of no interest here. */

/** Values of all series of a metric, by the metric's name. */
export type Samples = ReadonlyMap<string, readonly number[]>

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})?\s+(\S+)/

/** Lines that are no samples are left out; so are NaN and infinities. */
export function readSamples(page: string): Samples {
  const samples = new Map<string, number[]>()
  for (const line of page.split('\n')) {
    const match = SAMPLE.exec(line)
    if (match === null) continue
    const value = Number(match[2])
    if (!Number.isFinite(value)) continue
    const values = samples.get(match[1])
    if (values === undefined) samples.set(match[1], [value])
    else values.push(value)
  }
  return samples
}

/** Sum over the series of the first of these metrics that there is; 0 when there is none. */
export function sumOf(samples: Samples, names: readonly string[]): number {
  return (valuesOf(samples, names) ?? []).reduce((sum, value) => sum + value, 0)
}

/** Mean over the series of the first of these metrics that there is; null when there is none. */
export function meanOf(samples: Samples, names: readonly string[]): number | null {
  const values = valuesOf(samples, names)
  return values === undefined ? null : sumOf(samples, names) / values.length
}

function valuesOf(samples: Samples, names: readonly string[]): readonly number[] | undefined {
  return names.map((name) => samples.get(name)).find((values) => values !== undefined)
}
