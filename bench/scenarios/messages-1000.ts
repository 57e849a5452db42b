/** Latency that the gateway adds to each delta of a thousand message streams at the rate of a model. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { configurations } from '../support/gateway-config.ts'
import { addedMs, clientBottleneck, measureRounds, type RoundResults, runLoad } from '../support/load.ts'
import { DELTAS, PACE_MS } from '../support/stamped-deltas.ts'
import { directSubject, type Subject, startWorker } from '../support/subject.ts'

const STREAMS = 1_000
const MAX_ADDED_MS = 1

interface Variant {
  readonly name: string
  readonly subject: Subject
  readonly messages: 0 | 1
  /** Name of the variant without a gateway; null for those variants. */
  readonly against: string | null
}

async function run(options: RunOptions): Promise<Figure[]> {
  const worker = await startWorker('stamped-worker.ts')
  const variants: Variant[] = []
  try {
    const direct = directSubject(worker)
    variants.push({ name: 'chat, direct', subject: direct, messages: 0, against: null })
    variants.push({ name: 'messages, direct', subject: direct, messages: 1, against: null })
    const relaying = await startGateway({ workerPorts: [], ...configurations.vendorAt(worker.port) })
    variants.push({ name: 'relayed', subject: relaying, messages: 1, against: 'messages, direct' })
    const translating = await startGateway({ workerPorts: worker.ports, ...configurations.messages() })
    variants.push({ name: 'translated', subject: translating, messages: 1, against: 'chat, direct' })
    const load = ({ subject, messages }: Variant, streams: number) =>
      runLoad('stamped-load.ts', subject, { streams, messages })
    for (const variant of variants) await load(variant, 100)
    const results = await measureRounds(variants, options, (variant) => load(variant, STREAMS))
    return variants.flatMap((variant) => toFigures(variant, results))
  } finally {
    for (const { subject } of variants.reverse()) await subject.stop()
    await worker.child.stop()
  }
}

function toFigures({ name, against }: Variant, results: RoundResults): Figure[] {
  const own = results(name)
  if (against === null) {
    const values = own.map(({ report }) => report.p50Micros / 1_000)
    return [{ name: `p50 of a delta, ${name}`, unit: 'ms', values }]
  }
  return [
    {
      name: `added p50 of a delta, ${name}`,
      unit: 'ms',
      values: addedMs(own, results(against), 'p50Micros'),
      target: MAX_ADDED_MS,
      note: clientBottleneck(own) ?? `${STREAMS} streams of ${DELTAS} deltas, ${PACE_MS} ms apart`,
    },
    {
      name: `CPU per delta, ${name}`,
      unit: 'µs',
      values: own.map(({ cpuMicros, report }) => cpuMicros / report.deltas),
    },
    {
      name: `deltas out of order, ${name}`,
      unit: '',
      values: own.map(({ report }) => report.disordered),
      target: 0,
      note: 'a missing delta or a truncated stream ends the run',
    },
    {
      name: `concurrent streams, ${name}`,
      unit: '',
      values: own.map(({ report }) => report.mostOpen),
      atLeast: STREAMS,
    },
  ]
}

export const messages1000: Scenario = {
  name: 'messages-1000',
  question:
    'what latency does the gateway add to a delta of a thousand message streams, and are all in order?',
  run,
}
