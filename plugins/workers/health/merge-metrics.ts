/** Merges the metrics of several workers into one exposition in which every sample says whose it is. */
import type { PrometheusFamily, PrometheusSample } from '#shared'

export interface WorkerFamilies {
  /** Base URL, the value of the added label. */
  readonly url: string
  readonly families: readonly PrometheusFamily[]
}

const WORKER_LABEL = 'worker_addr'
const SAMPLES_A_STEP = 256
/** Labels of one metric, and all labels of a worker once each of its samples has those of its metric. */
const MAX_LABELS = 64
const MAX_CELLS = 500_000

/** The page is for everybody, and engines show all of their settings as labels of a metric. */
const SECRET_LABEL =
  /passw|secret|credential|authorization|(^|_)api_?key|(^|_)(access|admin|auth|bearer|hf|private|ssl)_?(key|token)/i

/** Whether a worker has so many kinds of labels that giving them to all of its samples would be the work. */
export function* hasTooManyLabels(families: readonly PrometheusFamily[]): Generator<void, boolean> {
  const kinds = new Map<string, { samples: number; labels: Set<string> }>()
  let seen = 0
  for (const { samples } of families) {
    for (const { name, labels } of samples) {
      let kind = kinds.get(name)
      if (kind === undefined) {
        kind = { samples: 0, labels: new Set() }
        kinds.set(name, kind)
      }
      kind.samples += 1
      for (const label of labels.keys()) kind.labels.add(label)
      if (kind.labels.size > MAX_LABELS) return true
      if (++seen % SAMPLES_A_STEP === 0) yield
    }
  }
  let cells = 0
  for (const { samples, labels } of kinds.values()) cells += samples * labels.size
  return cells > MAX_CELLS
}

/**
 * One family per name, HELP and TYPE from the first worker that has them. Colons in metric names become
 * underscores, and samples of one name all get the same labels, empty where a worker has none.
 */
export function* mergeMetrics(workers: readonly WorkerFamilies[]): Generator<void, PrometheusFamily[]> {
  let seen = 0
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
      for (const sample of family.samples) {
        target.samples.push(labelled(sample, url))
        if (++seen % SAMPLES_A_STEP === 0) yield
      }
    }
  }
  const families: PrometheusFamily[] = []
  for (const family of merged.values()) if (family.samples.length > 0) families.push(yield* padLabels(family))
  return families
}

function labelled(sample: PrometheusSample, url: string): PrometheusSample {
  const labels = new Map(sample.labels)
  for (const name of sample.labels.keys()) if (SECRET_LABEL.test(name)) labels.delete(name)
  labels.delete(WORKER_LABEL)
  labels.set(WORKER_LABEL, url)
  return { ...sample, name: withoutColons(sample.name), labels }
}

/** By sample name, not by family: a histogram's buckets carry `le`, its sum and count must not. */
function* padLabels(family: PrometheusFamily): Generator<void, PrometheusFamily> {
  const names = new Map<string, Set<string>>()
  let seen = 0
  for (const { name, labels } of family.samples) {
    const known = names.get(name) ?? new Set()
    for (const label of labels.keys()) known.add(label)
    names.set(name, known)
    if (++seen % SAMPLES_A_STEP === 0) yield
  }
  const samples: PrometheusSample[] = []
  for (const sample of family.samples) {
    samples.push(padded(sample, names.get(sample.name)))
    if (samples.length % SAMPLES_A_STEP === 0) yield
  }
  return { ...family, samples }
}

function padded(sample: PrometheusSample, all: ReadonlySet<string> | undefined): PrometheusSample {
  if (all === undefined || all.size === sample.labels.size) return sample
  return { ...sample, labels: new Map([...all].map((label) => [label, sample.labels.get(label) ?? ''])) }
}

function withoutColons(name: string): string {
  return name.replaceAll(':', '_')
}
