/** Streams of 64 chunks, 1 ms apart: what does the gateway add to each chunk? */

import { againstFigures } from '../support/against.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import type { Subject } from '../support/subject.ts'
import { withSubjects } from '../support/subjects.ts'

const STREAMS = 32

async function run({ rounds, seconds, progress, against }: RunOptions): Promise<Figure[]> {
  return withSubjects(
    async (subjects) => {
      const results: Record<Subject['name'], LoadResult[]> = {
        direct: [],
        nginx: [],
        before: [],
        gateway: [],
      }
      for (const subject of subjects) await runLoad('sse-load.ts', subject, { streams: STREAMS, seconds: 2 })
      for (let round = 0; round < rounds; round++) {
        for (const subject of rotate(subjects, round)) {
          progress(`round ${round + 1}/${rounds}: ${subject.name}`)
          results[subject.name].push(await runLoad('sse-load.ts', subject, { streams: STREAMS, seconds }))
        }
      }
      const perChunk = (name: Subject['name']) =>
        results[name].map((result) => result.cpuMicros / result.report.events)
      const nginx = perChunk('nginx')
      const gateway = perChunk('gateway')
      return [
        { name: 'CPU per chunk, nginx', unit: 'µs', values: nginx },
        { name: 'CPU per chunk, gateway', unit: 'µs', values: gateway },
        {
          name: 'CPU per chunk, gateway / nginx',
          unit: '×',
          values: gateway.map((value, round) => value / nginx[round]),
          target: 1.5,
          note: `${STREAMS} streams at a time; every stream was compared with what the worker sent, by hash`,
        },
        ...againstFigures('CPU per chunk', gateway, perChunk('before')),
        added('first event p50', 'firstEventP50Micros', results),
        added('first event p99', 'firstEventP99Micros', results),
        added('gap between events p99', 'gapP99Micros', results),
        {
          name: 'events split between reads, gateway',
          unit: '',
          values: results.gateway.map((result) => result.report.splitReads),
          target: 0,
        },
      ]
    },
    { against },
  )
}

function added(label: string, key: string, results: Record<Subject['name'], LoadResult[]>): Figure {
  return {
    name: `added ${label}, gateway`,
    unit: 'ms',
    values: results.gateway.map(
      (result, round) => (result.report[key] - results.direct[round].report[key]) / 1_000,
    ),
  }
}

export const relaySse: Scenario = {
  name: 'relay-sse',
  question: 'what does each chunk of a stream cost?',
  run,
}
