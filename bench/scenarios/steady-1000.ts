/** A thousand short chats per second: latency that the gateway adds. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { addedMs, measureRounds, runLoad } from '../support/load.ts'
import { withSubjects } from '../support/subjects.ts'

const LOAD = { connections: 32, bytes: 250, rate: 1_000 }
const WARM_UP_SECONDS = 3

function run(options: RunOptions): Promise<Figure[]> {
  const { seconds } = options
  return withSubjects(async (subjects) => {
    for (const subject of subjects) {
      await runLoad('paced-load.ts', subject, { ...LOAD, seconds: WARM_UP_SECONDS })
    }
    const results = await measureRounds(subjects, options, (subject) =>
      runLoad('paced-load.ts', subject, { ...LOAD, seconds }),
    )
    const added = (percentile: 'p50' | 'p99', name: 'nginx' | 'gateway'): Figure => ({
      name: `added ${percentile}, ${name}`,
      unit: 'ms',
      values: addedMs(results(name), results('direct'), `${percentile}Micros`),
    })
    const note = `${LOAD.rate} requests/s for ${seconds} s each; a failed request ends the run`
    return [
      added('p50', 'nginx'),
      added('p99', 'nginx'),
      { ...added('p50', 'gateway'), target: 0.5 },
      { ...added('p99', 'gateway'), target: 3, note },
      {
        name: 'requests completed, gateway',
        unit: '',
        values: results('gateway').map(({ report }) => report.requests),
        atLeast: LOAD.rate * seconds * 0.99,
      },
    ]
  })
}

export const steady1000: Scenario = {
  name: 'steady-1000',
  question: 'what latency does the gateway add at 1,000 requests/s, for the time of --seconds?',
  run,
}
