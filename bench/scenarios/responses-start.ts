/** A start over a million records, after the process before it was killed while it wrote. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Figure, median, type RunOptions, type Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { cpuMicros, startScript } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const RECORDS = 1_000_000
/** A start without any store that takes longer than this says that others have the machine. */
const BUSY_MS = 2_000

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-store-'))
  const worker = await startWorker()
  try {
    const without: number[] = []
    const after: number[] = []
    const cpuMs: number[] = []
    for (let round = 0; round < rounds; round++) {
      progress(
        `round ${round + 1}/${rounds}: ${round === 0 ? `writes ${RECORDS} records` : 'writes some more'}`,
      )
      const writer = startScript(new URL('../support/fill-history.ts', import.meta.url), [
        '--dir',
        dir,
        '--records',
        String(round === 0 ? RECORDS : RECORDS / 20),
      ])
      await writer.report()
      // It goes on writing.
      process.kill(writer.pid, 'SIGKILL')
      await writer.stop()
      progress(`round ${round + 1}/${rounds}: starts`)
      const plain = await startGateway({ workerPorts: worker.ports })
      without.push(plain.bootMs)
      const plainMicros = cpuMicros(plain.pid)
      await plain.stop()
      const plugins = { 'chat-engine': {}, storage: { dir }, history: {}, responses: {} }
      const gateway = await startGateway({ workerPorts: worker.ports, plugins })
      after.push(gateway.bootMs)
      cpuMs.push((cpuMicros(gateway.pid) - plainMicros) / 1_000)
      await gateway.stop()
    }
    const isBusy = median(without) > BUSY_MS
    return [
      { name: 'start to ready, without a store', unit: 'ms', values: without },
      {
        name: 'start to ready, after a kill',
        unit: 'ms',
        values: isBusy ? [] : after,
        target: 2_000,
        withheld: isBusy
          ? `this machine is so busy that a start without a store takes ${Math.round(median(without))} ms; with one ${Math.round(median(after))} ms`
          : undefined,
        note: `${RECORDS} records of history; killed with SIGKILL in the middle of writing more`,
      },
      {
        name: 'CPU of the start after a kill, beyond one without a store',
        unit: 'ms',
        values: cpuMs,
        target: 1_000,
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
