/** Start-up time and idle memory of the gateway. */
import { comparison } from '../support/compare-checkouts.ts'
import type { CompareOptions, Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { rssBytes, wait } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const SETTLE_MS = 2_000

interface Starts {
  readonly bootMs: number[]
  readonly idleMegabytes: number[]
}

/** Starts each checkout once per round. @param roots of the checkouts; null for this one */
async function startInTurns(
  roots: readonly (string | null)[],
  { rounds, progress }: Pick<RunOptions, 'rounds' | 'progress'>,
): Promise<Starts[]> {
  const worker = await startWorker()
  const starts = roots.map((): Starts => ({ bootMs: [], idleMegabytes: [] }))
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      for (const [index, root] of roots.entries()) await startOnce(worker.ports, root, starts[index])
    }
  } finally {
    await worker.child.stop()
  }
  return starts
}

async function startOnce(workerPorts: readonly number[], root: string | null, into: Starts): Promise<void> {
  const gateway = await startGateway({ workerPorts, root })
  try {
    into.bootMs.push(gateway.bootMs)
    await wait(SETTLE_MS)
    into.idleMegabytes.push(rssBytes(gateway.pid) / 1_000_000)
  } finally {
    await gateway.stop()
  }
}

async function run(options: RunOptions): Promise<Figure[]> {
  const [{ bootMs, idleMegabytes }] = await startInTurns([null], options)
  const note = 'from the start of the process to the first 200 of /readiness, with discovery of its worker'
  return [
    { name: 'boot to ready', unit: 'ms', values: bootMs, target: 1_000, note },
    { name: 'idle memory', unit: 'MB', values: idleMegabytes, target: 150 },
  ]
}

async function compare(options: CompareOptions): Promise<Figure[]> {
  const [before, now] = await startInTurns([options.against, null], options)
  return [
    ...comparison('idle memory', 'MB', before.idleMegabytes, now.idleMegabytes),
    ...comparison('boot to ready', 'ms', before.bootMs, now.bootMs),
  ]
}

export const boot: Scenario = {
  name: 'boot',
  question: 'how long does a start take, and how much memory does an idle gateway hold?',
  run,
  compare,
}
