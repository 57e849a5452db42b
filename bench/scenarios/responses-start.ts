/** A start over a million records, after the process before it was killed while it wrote. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Figure, median, type RunOptions, type Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { cpuMicros, startScript } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const RECORDS = 1_000_000
/** A start over an empty store that takes longer than this says that others have the machine. */
const BUSY_MS = 2_000

/** How long a start took, and what it cost until every worker was known. */
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
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-store-'))
  const worker = await startWorker()
  try {
    const empty: number[] = []
    const after: number[] = []
    const cpuMs: number[] = []
    for (let round = 0; round < rounds; round++) {
      progress(
        `round ${round + 1}/${rounds}: ${round === 0 ? `writes ${RECORDS} records` : 'writes some more'}`,
      )
      const writer = startScript(new URL('../support/fill-history.ts', import.meta.url), [
        '--dir',
        join(dir, 'full'),
        '--records',
        String(round === 0 ? RECORDS : RECORDS / 20),
      ])
      await writer.report()
      // It goes on writing.
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
      { name: 'start to ready, over an empty store', unit: 'ms', values: empty },
      {
        name: 'start to ready, after a kill',
        unit: 'ms',
        values: isBusy ? [] : after,
        target: 2_000,
        withheld: isBusy
          ? `this machine is so busy that a start over an empty store takes ${Math.round(median(empty))} ms; over the full one ${Math.round(median(after))} ms`
          : undefined,
        note: `${RECORDS} records of history; killed with SIGKILL in the middle of writing more`,
      },
      {
        name: 'what the records add to the start',
        unit: 'ms',
        values: after.map((value, round) => value - empty[round]),
        target: 1_000,
      },
      {
        name: 'CPU that the records add to the start',
        unit: 'ms',
        values: cpuMs,
        target: 1_000,
        note: 'most of it is what LevelDB tidies up in the background once it is open',
      },
    ]
  } finally {
    await worker.child.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

export const responsesStart: Scenario = {
  name: 'responses-start',
  question: 'how long does a start take over a million records, after a kill?',
  run,
}
