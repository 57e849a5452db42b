/** A start over a million records, after the process before it was killed while it wrote. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { startScript } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const RECORDS = 1_000_000

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-store-'))
  const worker = await startWorker()
  try {
    const without: number[] = []
    const after: number[] = []
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
      await plain.stop()
      const plugins = { 'chat-engine': {}, storage: { dir }, history: {}, responses: {} }
      const gateway = await startGateway({ workerPorts: worker.ports, plugins })
      after.push(gateway.bootMs)
      await gateway.stop()
    }
    return [
      { name: 'start to ready, without a store', unit: 'ms', values: without },
      {
        name: 'start to ready, after a kill',
        unit: 'ms',
        values: after,
        target: 2_000,
        note: `${RECORDS} records of history; killed with SIGKILL in the middle of writing more`,
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
