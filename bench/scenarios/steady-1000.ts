/** A thousand short chats a second, as long as wanted: what does each wait longer than without a gateway? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import type { Subject } from '../support/subject.ts'
import { withSubjects } from '../support/subjects.ts'

const LOAD = { connections: 32, bytes: 250, rate: 1_000 }
const WARM_UP_SECONDS = 3

function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  return withSubjects(async (subjects) => {
    const results: Record<Subject['name'], LoadResult[]> = { direct: [], nginx: [], before: [], gateway: [] }
    for (const subject of subjects) {
      await runLoad('paced-load.ts', subject, { ...LOAD, seconds: WARM_UP_SECONDS })
    }
    for (let round = 0; round < rounds; round++) {
      for (const subject of rotate(subjects, round)) {
        progress(`round ${round + 1}/${rounds}: ${subject.name}`)
        results[subject.name].push(await runLoad('paced-load.ts', subject, { ...LOAD, seconds }))
      }
    }
    const added = (percentile: 'p50Micros' | 'p99Micros', name: 'nginx' | 'gateway') =>
      results[name].map(
        (result, round) => (result.report[percentile] - results.direct[round].report[percentile]) / 1_000,
      )
    return [
      { name: 'added p50, nginx', unit: 'ms', values: added('p50Micros', 'nginx') },
      { name: 'added p99, nginx', unit: 'ms', values: added('p99Micros', 'nginx') },
      { name: 'added p50, gateway', unit: 'ms', values: added('p50Micros', 'gateway'), target: 0.5 },
      {
        name: 'added p99, gateway',
        unit: 'ms',
        values: added('p99Micros', 'gateway'),
        target: 3,
        note: `${LOAD.rate} requests/s for ${seconds} s each; a single failed request would have ended the run`,
      },
      {
        name: 'requests answered, gateway',
        unit: '',
        values: results.gateway.map((result) => result.report.requests),
        atLeast: LOAD.rate * seconds * 0.99,
      },
    ]
  })
}

export const steady1000: Scenario = {
  name: 'steady-1000',
  question: 'what does a chat wait longer at 1,000 requests/s, for as long as --seconds says?',
  run,
}
