/** What a chunk of a stream costs one way, beside the relayed chat stream of the same run. */
import type { Figure, RunOptions } from './figure.ts'
import { type GatewayFeatures, startGateway } from './gateway.ts'
import { type LoadResult, rotate, runLoad } from './load.ts'
import { SSE_CHUNKS } from './sse-workload.ts'
import { type Subject, startWorker } from './subject.ts'

const STREAMS = 32

export interface OtherWay {
  readonly name: string
  /** @param workerPort of the simulated worker */
  features(workerPort: number): GatewayFeatures
  /** Options of the load client. */
  readonly load: Readonly<Record<string, number>>
  /** Most that a chunk may cost, in chunks of the relay. */
  readonly target: number
  readonly note: string
}

interface Way {
  readonly name: string
  readonly subject: Subject
  readonly load: Readonly<Record<string, number>>
}

export async function runBesideRelay(
  { rounds, seconds, progress }: RunOptions,
  other: OtherWay,
): Promise<Figure[]> {
  const worker = await startWorker()
  const ways: Way[] = []
  try {
    const workerPorts = worker.ports
    ways.push({ name: 'relayed', subject: await startGateway({ workerPorts }), load: { exact: 1 } })
    const subject = await startGateway({ workerPorts, ...other.features(worker.port) })
    ways.push({ name: other.name, subject, load: other.load })
    const results = new Map<string, LoadResult[]>(ways.map(({ name }) => [name, []]))
    const run = ({ subject, load }: Way, forSeconds: number) =>
      runLoad('sse-load.ts', subject, { streams: STREAMS, seconds: forSeconds, ...load })
    for (const way of ways) await run(way, 2)
    for (let round = 0; round < rounds; round++) {
      for (const way of rotate(ways, round)) {
        progress(`round ${round + 1}/${rounds}: ${way.name}`)
        results.get(way.name)?.push(await run(way, seconds))
      }
    }
    const perChunk = (name: string) =>
      (results.get(name) ?? []).map(({ cpuMicros, report }) => cpuMicros / (report.streams * SSE_CHUNKS))
    const relay = perChunk('relayed')
    const measured = perChunk(other.name)
    return [
      { name: 'CPU per chunk, chat relayed', unit: 'µs', values: relay },
      { name: `CPU per chunk, ${other.name}`, unit: 'µs', values: measured },
      {
        name: `CPU per chunk, ${other.name} / chat relayed`,
        unit: '×',
        values: measured.map((value, round) => value / relay[round]),
        target: other.target,
        note: `${STREAMS} streams at a time; ${other.note}`,
      },
    ]
  } finally {
    for (const { subject } of ways.reverse()) await subject.stop()
    await worker.child.stop()
  }
}
