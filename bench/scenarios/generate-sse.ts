/** The stream of relay-sse through the generation layer: read into events, and told as chat chunks again. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import { SSE_CHUNKS } from '../support/sse-workload.ts'
import { type Subject, startWorker } from '../support/subject.ts'

const STREAMS = 32

interface Way {
  readonly name: 'relay' | 'generate'
  readonly subject: Subject
  readonly exact: number
}

async function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const ways: Way[] = []
  try {
    const workerPorts = worker.ports
    ways.push({ name: 'relay', subject: await startGateway({ workerPorts }), exact: 1 })
    const plugins = { chat: { chat: 'normalize' } }
    ways.push({ name: 'generate', subject: await startGateway({ workerPorts, plugins }), exact: 0 })
    const results: Record<Way['name'], LoadResult[]> = { relay: [], generate: [] }
    const load = ({ subject, exact }: Way, forSeconds: number) =>
      runLoad('sse-load.ts', subject, { streams: STREAMS, seconds: forSeconds, exact })
    for (const way of ways) await load(way, 2)
    for (let round = 0; round < rounds; round++) {
      for (const way of rotate(ways, round)) {
        progress(`round ${round + 1}/${rounds}: ${way.name}`)
        results[way.name].push(await load(way, seconds))
      }
    }
    const perChunk = (name: Way['name']) =>
      results[name].map(({ cpuMicros, report }) => cpuMicros / (report.streams * SSE_CHUNKS))
    const relay = perChunk('relay')
    const generate = perChunk('generate')
    return [
      { name: 'CPU per chunk, relayed', unit: 'µs', values: relay },
      { name: 'CPU per chunk, generated', unit: 'µs', values: generate },
      {
        name: 'CPU per chunk, generated / relayed',
        unit: '×',
        values: generate.map((value, round) => value / relay[round]),
        target: 2,
        note: `${STREAMS} streams at a time; the text of every stream was compared with the worker's`,
      },
    ]
  } finally {
    for (const { subject } of ways.reverse()) await subject.stop()
    await worker.child.stop()
  }
}

export const generateSse: Scenario = {
  name: 'generate-sse',
  question: 'what does each chunk cost when the answer is read and told anew?',
  run,
}
