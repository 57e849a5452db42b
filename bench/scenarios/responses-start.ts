/** A start with a million stored records after the previous process was killed during a write. */
import { join } from 'node:path'
import { type Figure, median, type RunOptions, type Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { cpuMicros, startScript, temporaryDirectory } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const RECORDS = 1_000_000
/** If a start with an empty store takes longer, the machine is busy. */
const BUSY_MS = 2_000

/** Time of a start, and its CPU time until every worker is ready. */
async function start(
  workerPorts: readonly number[],
  dir: string,
): Promise<{ bootMs: number; cpuMs: number }> {
  const plugins = { storage: { dir }, history: {}, responses: {} }
  const gateway = await startGateway({ workerPorts, plugins })
  const cpuMs = cpuMicros(gateway.pid) / 1_000
  await gateway.stop()
  return { bootMs: gateway.bootMs, cpuMs }
}

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const dir = temporaryDirectory()
  const worker = await startWorker()
  try {
    const empty: number[] = []
    const after: number[] = []
    const cpuMs: number[] = []
    for (let round = 0; round < rounds; round++) {
      progress(
        `round ${round + 1}/${rounds}: ${round === 0 ? `writes ${RECORDS} records` : 'writes more records'}`,
      )
      const writer = startScript('fill-history.ts', {
        dir: join(dir, 'full'),
        records: round === 0 ? RECORDS : RECORDS / 20,
      })
      await writer.report()
      // It continues to write after the report.
      process.kill(writer.pid, 'SIGKILL')
      await writer.stop()
      progress(`round ${round + 1}/${rounds}: starts`)
      const plain = await start(worker.ports, join(dir, `empty-${round}`))
      const full = await start(worker.ports, join(dir, 'full'))
      empty.push(plain.bootMs)
      after.push(full.bootMs)
      cpuMs.push(full.cpuMs - plain.cpuMs)
    }
    const isBusy = median(empty) > BUSY_MS
    return [
      { name: 'start to ready, empty store', unit: 'ms', values: empty },
      {
        name: 'start to ready, after a kill',
        unit: 'ms',
        values: isBusy ? [] : after,
        target: 2_000,
        withheld: isBusy
          ? `the machine was busy: a start takes ${Math.round(median(empty))} ms with an empty store and ${Math.round(median(after))} ms with the full one`
          : undefined,
        note: `${RECORDS} records of history; killed with SIGKILL while writing more`,
      },
      {
        name: 'time that the records add to the start',
        unit: 'ms',
        values: after.map((value, round) => value - empty[round]),
        target: 1_000,
      },
      {
        name: 'CPU that the records add to the start',
        unit: 'ms',
        values: cpuMs,
        target: 1_000,
        note: 'most of it is background compaction by LevelDB after the open',
      },
    ]
  } finally {
    await worker.child.stop()
  }
}

export const responsesStart: Scenario = {
  name: 'responses-start',
  question: 'how long does a start take with a million records, after a kill?',
  run,
}
