/** The stream of relay-sse as a streamed response: each delta an event with a number, the whole stored at its end. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import { SSE_CHUNKS } from '../support/sse-workload.ts'
import { type Subject, startWorker } from '../support/subject.ts'

const STREAMS = 32

interface Way {
  readonly name: 'relay' | 'responses'
  readonly load: Readonly<Record<string, number>>
}

const WAYS: readonly Way[] = [
  { name: 'relay', load: { exact: 1 } },
  { name: 'responses', load: { exact: 0, responses: 1 } },
]

async function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-store-'))
  let subject: Subject | null = null
  try {
    const plugins = { storage: { dir }, history: {}, responses: {} }
    const gateway = await startGateway({ workerPorts: worker.ports, plugins })
    subject = gateway
    const results: Record<Way['name'], LoadResult[]> = { relay: [], responses: [] }
    const load = (way: Way, forSeconds: number) =>
      runLoad('sse-load.ts', gateway, { streams: STREAMS, seconds: forSeconds, ...way.load })
    for (const way of WAYS) await load(way, 2)
    for (let round = 0; round < rounds; round++) {
      for (const way of rotate(WAYS, round)) {
        progress(`round ${round + 1}/${rounds}: ${way.name}`)
        results[way.name].push(await load(way, seconds))
      }
    }
    const perChunk = (name: Way['name']) =>
      results[name].map(({ cpuMicros, report }) => cpuMicros / (report.streams * SSE_CHUNKS))
    const relay = perChunk('relay')
    const responses = perChunk('responses')
    return [
      { name: 'CPU per chunk, relayed', unit: 'µs', values: relay },
      { name: 'CPU per text delta of a response', unit: 'µs', values: responses },
      {
        name: 'CPU per text delta / relayed chunk',
        unit: '×',
        values: responses.map((value, round) => value / relay[round]),
        target: 2.5,
        note: `${STREAMS} streams at a time, stored; the text of every stream was compared with the worker's`,
      },
    ]
  } finally {
    await subject?.stop()
    await worker.child.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

export const responsesSse: Scenario = {
  name: 'responses-sse',
  question: 'what does each text delta of a streamed response cost?',
  run,
}
