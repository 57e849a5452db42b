/** A thousand streams of messages at a model's pace: what does each delta wait longer than without a gateway? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { clientBottleneck, type LoadResult, rotate, runLoad } from '../support/load.ts'
import { DELTAS, PACE_MS } from '../support/stamped-deltas.ts'
import { directSubject, type Subject, startWorker } from '../support/subject.ts'
import { vendorAt } from '../support/vendor.ts'

const STREAMS = 1_000
const MOST_ADDED_MS = 1

interface Way {
  readonly name: string
  readonly subject: Subject
  readonly messages: 0 | 1
  /** The way without a gateway; null for those themselves. */
  readonly against: string | null
}

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker('stamped-worker.ts')
  const ways: Way[] = []
  try {
    const direct = directSubject(worker)
    ways.push({ name: 'chat, direct', subject: direct, messages: 0, against: null })
    ways.push({ name: 'messages, direct', subject: direct, messages: 1, against: null })
    const relaying = await startGateway({ workerPorts: [], plugins: vendorAt(worker.port) })
    ways.push({ name: 'relayed', subject: relaying, messages: 1, against: 'messages, direct' })
    const translating = await startGateway({
      workerPorts: worker.ports,
      plugins: { messages: {} },
    })
    ways.push({ name: 'translated', subject: translating, messages: 1, against: 'chat, direct' })
    const results = new Map<string, LoadResult[]>(ways.map(({ name }) => [name, []]))
    const load = ({ subject, messages }: Way, streams: number) =>
      runLoad('stamped-load.ts', subject, { streams, messages })
    for (const way of ways) await load(way, 100)
    for (let round = 0; round < rounds; round++) {
      for (const way of rotate(ways, round)) {
        progress(`round ${round + 1}/${rounds}: ${way.name}`)
        results.get(way.name)?.push(await load(way, STREAMS))
      }
    }
    return ways.flatMap((way) => toFigures(way, results))
  } finally {
    for (const { subject } of ways.reverse()) await subject.stop()
    await worker.child.stop()
  }
}

function toFigures({ name, against }: Way, results: ReadonlyMap<string, LoadResult[]>): Figure[] {
  const own = results.get(name) ?? []
  const p50Ms = ({ report }: LoadResult) => report.p50Micros / 1_000
  if (against === null) return [{ name: `p50 of a delta, ${name}`, unit: 'ms', values: own.map(p50Ms) }]
  const direct = results.get(against) ?? []
  return [
    {
      name: `added p50 of a delta, ${name}`,
      unit: 'ms',
      values: own.map((result, round) => p50Ms(result) - p50Ms(direct[round])),
      target: MOST_ADDED_MS,
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
      note: 'a missing delta or a cut stream would have ended the run',
    },
    {
      name: `streams open at once, ${name}`,
      unit: '',
      values: own.map(({ report }) => report.mostOpen),
      atLeast: STREAMS,
    },
  ]
}

export const messages1000: Scenario = {
  name: 'messages-1000',
  question:
    'what does a delta of a thousand streams of messages wait longer, and do all come in their order?',
  run,
}
