/** Merges the metrics of several workers into one exposition in which every sample says whose it is. */
import type { PrometheusFamily, PrometheusSample } from '#contracts'

export interface WorkerFamilies {
  /** Base URL, the value of the added label. */
  readonly url: string
  readonly families: readonly PrometheusFamily[]
}

const WORKER_LABEL = 'worker_addr'

/**
 * One family per name, HELP and TYPE from the first worker that has them. Colons in metric names become
 * underscores, and samples of one name all get the same labels, empty where a worker has none.
 *
 * @source routes facts 6.4
 */
export function mergeMetrics(workers: readonly WorkerFamilies[]): PrometheusFamily[] {
  const merged = new Map<string, PrometheusFamily>()
  for (const { url, families } of workers) {
    for (const family of families) {
      const name = withoutColons(family.name)
      let target = merged.get(name)
      if (target === undefined) {
        target = { name, type: null, help: null, samples: [] }
        merged.set(name, target)
      }
      target.type ??= family.type
      target.help ??= family.help
      for (const sample of family.samples) target.samples.push(labelled(sample, url))
    }
  }
  return [...merged.values()].filter(({ samples }) => samples.length > 0).map(padLabels)
}

function labelled(sample: PrometheusSample, url: string): PrometheusSample {
  const labels = new Map(sample.labels)
  labels.delete(WORKER_LABEL)
  labels.set(WORKER_LABEL, url)
  return { ...sample, name: withoutColons(sample.name), labels }
}

/** By sample name, not by family: a histogram's buckets carry `le`, its sum and count must not. */
function padLabels(family: PrometheusFamily): PrometheusFamily {
  const names = new Map<string, Set<string>>()
  for (const { name, labels } of family.samples) {
    const known = names.get(name) ?? new Set()
    for (const label of labels.keys()) known.add(label)
    names.set(name, known)
  }
  const samples = family.samples.map((sample) => {
    const all = names.get(sample.name)
    if (all === undefined || all.size === sample.labels.size) return sample
    return { ...sample, labels: new Map([...all].map((label) => [label, sample.labels.get(label) ?? ''])) }
  })
  return { ...family, samples }
}

function withoutColons(name: string): string {
  return name.replaceAll(':', '_')
}
