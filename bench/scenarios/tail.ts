/** The slowest requests at saturation, and the collections of the gateway meanwhile. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { addedMs, type LoadResult, measureRounds, runLoad, warmUp } from '../support/load.ts'
import { openRuntimeReports } from '../support/runtime-reports.ts'
import { withSubjects } from '../support/subjects.ts'

const LOAD = { connections: 32, bytes: 250 }
/** A collection above this delays requests noticeably, in milliseconds. */
const LONG_MS = 5
const REPORT_MS = 250

function run(options: RunOptions): Promise<Figure[]> {
  const reports = openRuntimeReports(REPORT_MS)
  return withSubjects(
    async (subjects) => {
      for (const subject of subjects)
        await warmUp((seconds) => runLoad('json-load.ts', subject, { ...LOAD, seconds }))
      const pausesMs: number[][] = []
      const results = await measureRounds(subjects, options, async (subject) => {
        reports.take()
        const result = await runLoad('json-load.ts', subject, { ...LOAD, seconds: options.seconds })
        if (subject.name === 'gateway') pausesMs.push(reports.take().flatMap((report) => report.pausesMs))
        return result
      })
      const p99 = (name: string): Figure => ({
        name: `p99 at saturation, ${name}`,
        unit: 'ms',
        values: results(name).map(({ report }: LoadResult) => report.p99Micros / 1_000),
      })
      return [
        ...subjects.map(({ name }) => p99(name)),
        {
          name: 'p99 at saturation, gateway - nginx',
          unit: 'ms',
          values: addedMs(results('gateway'), results('nginx'), 'p99Micros'),
          target: 1,
        },
        { name: 'collections', unit: '', values: pausesMs.map((round) => round.length) },
        {
          name: `collections above ${LONG_MS} ms`,
          unit: '',
          values: pausesMs.map((round) => round.filter((pauseMs) => pauseMs > LONG_MS).length),
          target: 0,
          note: 'of all threads; elapsed time, in which a busy machine may have run other processes',
        },
        { name: 'longest collection', unit: 'ms', values: pausesMs.map((round) => Math.max(0, ...round)) },
      ]
    },
    { features: { runtime: reports } },
  )
}

export const tail: Scenario = {
  name: 'tail',
  question:
    'how much do the slowest 1 % of chats wait at saturation, and for how long does the gateway collect garbage?',
  run,
}
