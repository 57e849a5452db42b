/** Start-up time and idle memory of the gateway. */
import { againstFigures, type Figure, type RunOptions, type Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { rssBytes, wait } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const SETTLE_MS = 2_000

interface Starts {
  readonly bootMs: number[]
  readonly idleMegabytes: number[]
}

async function startOnce(workerPort: number, against: string | null, into: Starts): Promise<void> {
  const gateway = await startGateway({ workerPorts: [workerPort], against })
  try {
    into.bootMs.push(gateway.bootMs)
    await wait(SETTLE_MS)
    into.idleMegabytes.push(rssBytes(gateway.pid) / 1_000_000)
  } finally {
    await gateway.stop()
  }
}

async function run({ rounds, progress, against }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const now: Starts = { bootMs: [], idleMegabytes: [] }
  const before: Starts = { bootMs: [], idleMegabytes: [] }
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      await startOnce(worker.port, null, now)
      if (against !== null) await startOnce(worker.port, against, before)
    }
  } finally {
    await worker.child.stop()
  }
  const note = 'from the start of the process to the first 200 of /readiness, with discovery of its worker'
  return [
    { name: 'boot to ready', unit: 'ms', values: now.bootMs, target: 1_000, note },
    ...againstFigures('boot to ready', now.bootMs, before.bootMs, 'ms'),
    { name: 'idle memory', unit: 'MB', values: now.idleMegabytes, target: 150 },
    ...againstFigures('idle memory', now.idleMegabytes, before.idleMegabytes, 'MB'),
  ]
}

export const boot: Scenario = {
  name: 'boot',
  question: 'how long does a start take, and how much memory does an idle gateway hold?',
  run,
}
