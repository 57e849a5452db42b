/** The measurement that both whole-answer scenarios share: CPU at saturation, latency at half of it. */

import { againstFigures } from './against.ts'
import { type Figure, median, type RunOptions } from './figure.ts'
import type { GatewayFeatures } from './gateway.ts'
import { clientBottleneck, type LoadResult, rotate, runLoad } from './load.ts'
import type { Subject } from './subject.ts'
import { withSubjects } from './subjects.ts'

const CONNECTIONS = 32
/** A direct path slower than this, at half load, waited for the processor and not for the worker. */
const QUIET_P99_MS = 5

export interface JsonRelay {
  /** Length of each request body, in bytes. */
  readonly bodyBytes: number
  /** Most CPU time of the gateway per request, as a multiple of nginx's. */
  readonly cpuTarget: number
  /** What the gateway has on beside the usual. */
  readonly features?: GatewayFeatures
  /** Workers to choose from. Default 1. */
  readonly workers?: number
}

type Rounds = Record<Subject['name'], LoadResult[]>

export function measureJsonRelay(relay: JsonRelay, options: RunOptions): Promise<Figure[]> {
  return withSubjects(
    async (subjects) => {
      const load = { connections: CONNECTIONS, bytes: relay.bodyBytes }
      for (const subject of subjects) await runLoad('json-load.ts', subject, { ...load, seconds: 2 })
      const saturated = await runRounds('saturation', 'json-load.ts', subjects, load, options)
      const bottleneck = clientBottleneck(saturated.gateway)
      const rate = Math.round(median(perSecond(saturated.gateway)) / 2)
      const paced =
        bottleneck === undefined
          ? await runRounds(`${rate}/s`, 'paced-load.ts', subjects, { ...load, rate }, options)
          : null
      const refusal = bottleneck ?? busyMachine(paced)
      return [
        ...cpuFigures(saturated, relay.cpuTarget),
        ...throughputFigures(saturated),
        ...latencyFigures(refusal === undefined ? paced : null, rate, refusal),
      ]
    },
    { ...relay, against: options.against },
  )
}

async function runRounds(
  label: string,
  file: string,
  subjects: readonly Subject[],
  load: Readonly<Record<string, number>>,
  { rounds, seconds, progress }: RunOptions,
): Promise<Rounds> {
  const results: Rounds = { direct: [], nginx: [], before: [], gateway: [] }
  for (let round = 0; round < rounds; round++) {
    for (const subject of rotate(subjects, round)) {
      progress(`${label}, round ${round + 1}/${rounds}: ${subject.name}`)
      results[subject.name].push(await runLoad(file, subject, { ...load, seconds }))
    }
  }
  return results
}

function cpuFigures(results: Rounds, target: number): Figure[] {
  const perRequest = (name: Subject['name']) =>
    results[name].map((result) => result.cpuMicros / result.report.requests)
  const nginx = perRequest('nginx')
  const gateway = perRequest('gateway')
  return [
    { name: 'CPU per request, nginx', unit: 'µs', values: nginx },
    { name: 'CPU per request, gateway', unit: 'µs', values: gateway },
    {
      name: 'CPU per request, gateway / nginx',
      unit: '×',
      values: gateway.map((value, round) => value / nginx[round]),
      target,
    },
    ...againstFigures('CPU per request', gateway, perRequest('before')),
  ]
}

function throughputFigures(results: Rounds): Figure[] {
  return (['direct', 'nginx', 'gateway'] as const).map((name) => {
    const withheld = clientBottleneck(results[name])
    return {
      name: `throughput, ${name}`,
      unit: '1/s',
      values: withheld === undefined ? perSecond(results[name]) : [],
      withheld,
    }
  })
}

/** Why differences of latency mean nothing, or undefined when they do. */
function busyMachine(paced: Rounds | null): string | undefined {
  const directMs = median((paced?.direct ?? []).map((result) => result.report.p99Micros / 1_000))
  if (paced === null || directMs <= QUIET_P99_MS) return undefined
  return `the machine was busy: p99 of the direct path alone was ${directMs.toFixed(1)} ms`
}

function latencyFigures(paced: Rounds | null, rate: number, withheld: string | undefined): Figure[] {
  const added = (percentile: 'p50Micros' | 'p99Micros', name: 'nginx' | 'gateway') =>
    (paced?.[name] ?? []).map(
      (result, round) => (result.report[percentile] - (paced?.direct[round].report[percentile] ?? 0)) / 1_000,
    )
  const note = `at ${rate} requests/s for every subject, half of what the gateway served at saturation`
  return [
    { name: 'added p50, nginx', unit: 'ms', values: added('p50Micros', 'nginx'), withheld },
    { name: 'added p99, nginx', unit: 'ms', values: added('p99Micros', 'nginx'), withheld },
    { name: 'added p50, gateway', unit: 'ms', values: added('p50Micros', 'gateway'), withheld },
    {
      name: 'added p99, gateway',
      unit: 'ms',
      values: added('p99Micros', 'gateway'),
      target: 2,
      withheld,
      note,
    },
  ]
}

function perSecond(results: readonly LoadResult[]): number[] {
  return results.map((result) => result.report.perSecond)
}
