/** Streams of 64 chunks, 1 ms apart: cost and latency that the gateway adds to each chunk. */
import { compareCheckouts } from '../support/compare-checkouts.ts'
import { type Figure, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { addedMs, measureRounds, runLoad } from '../support/load.ts'
import { withSubjects } from '../support/subjects.ts'

const STREAMS = 32

function run(options: RunOptions): Promise<Figure[]> {
  const { seconds } = options
  return withSubjects(async (subjects) => {
    for (const subject of subjects) await runLoad('sse-load.ts', subject, { streams: STREAMS, seconds: 2 })
    const results = await measureRounds(subjects, options, (subject) =>
      runLoad('sse-load.ts', subject, { streams: STREAMS, seconds }),
    )
    const perChunk = (name: string) => results(name).map(({ cpuMicros, report }) => cpuMicros / report.events)
    const nginx = perChunk('nginx')
    const gateway = perChunk('gateway')
    const added = (label: string, key: string): Figure => ({
      name: `added ${label}, gateway`,
      unit: 'ms',
      values: addedMs(results('gateway'), results('direct'), key),
    })
    return [
      { name: 'CPU per chunk, nginx', unit: 'µs', values: nginx },
      { name: 'CPU per chunk, gateway', unit: 'µs', values: gateway },
      {
        name: 'CPU per chunk, gateway / nginx',
        unit: '×',
        values: ratios(gateway, nginx),
        target: 1.5,
        note: `${STREAMS} concurrent streams; the hash of every stream was compared with the worker's`,
      },
      added('first event p50', 'firstEventP50Micros'),
      added('first event p99', 'firstEventP99Micros'),
      added('gap between events p99', 'gapP99Micros'),
      {
        name: 'events split between reads, gateway',
        unit: '',
        values: results('gateway').map(({ report }) => report.splitReads),
        target: 0,
      },
    ]
  })
}

export const relaySse: Scenario = {
  name: 'relay-sse',
  question: 'what does each chunk of a stream cost?',
  run,
  compare: (options) =>
    compareCheckouts(
      {
        start: (root, { ports }) => startGateway({ root, workerPorts: ports }),
        client: 'sse-load.ts',
        load: { streams: STREAMS },
      },
      options,
    ),
}
