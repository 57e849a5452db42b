/** Starting up: how long until the gateway is ready, and how much memory does it hold then? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { rssBytes, wait } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const SETTLE_MS = 2_000

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const bootMs: number[] = []
  const idleMegabytes: number[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      const gateway = await startGateway({ workerPorts: [worker.port] })
      try {
        bootMs.push(gateway.bootMs)
        await wait(SETTLE_MS)
        idleMegabytes.push(rssBytes(gateway.pid) / 1_000_000)
      } finally {
        await gateway.stop()
      }
    }
  } finally {
    await worker.child.stop()
  }
  const note = 'from the start of the process to the first 200 of /readiness, its worker found included'
  return [
    { name: 'boot to ready', unit: 'ms', values: bootMs, target: 1_000, note },
    { name: 'idle memory', unit: 'MB', values: idleMegabytes, target: 150 },
  ]
}

export const boot: Scenario = {
  name: 'boot',
  question: 'how long does a start take, and what does an idle gateway hold?',
  run,
}
