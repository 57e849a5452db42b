/** CPU time and wake-ups of a gateway without requests, alone and in a mesh. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { startMesh } from '../support/mesh.ts'
import { cpuMicros, threadWakeUps, wait } from '../support/process.ts'
import { type Subject, startWorker } from '../support/subject.ts'

/** V8 collects the garbage of the start when little was allocated for half a minute. */
const SETTLE_MS = 45_000
const MEASURED_MS = 20_000

async function measure(name: string, { pid }: Subject, target: number, rounds: number): Promise<Figure[]> {
  await wait(SETTLE_MS)
  const shares: number[] = []
  const wakeUps = new Map<string, number>()
  for (let round = 0; round < rounds; round++) {
    const cpuBefore = cpuMicros(pid)
    const before = threadWakeUps(pid)
    const startedAtMs = performance.now()
    await wait(MEASURED_MS)
    const elapsedMs = performance.now() - startedAtMs
    shares.push((cpuMicros(pid) - cpuBefore) / elapsedMs / 10)
    for (const [thread, count] of threadWakeUps(pid)) {
      const more = ((count - (before.get(thread) ?? 0)) / elapsedMs) * 1_000
      if (more > 0) wakeUps.set(thread, (wakeUps.get(thread) ?? 0) + more / rounds)
    }
  }
  const note = [...wakeUps]
    .sort(([, a], [, b]) => b - a)
    .map(([thread, count]) => `${thread} ${count.toFixed(1)}`)
  return [
    { name: `CPU, ${name}`, unit: '% of a core', values: shares, target },
    {
      name: `wake-ups per second, ${name}`,
      unit: '',
      values: [[...wakeUps.values()].reduce((sum, count) => sum + count, 0)],
      note: note.join(', '),
    },
  ]
}

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const figures: Figure[] = []
  const kinds = [
    { name: 'alone', target: 0.3, start: async () => [await startGateway({ workerPorts: worker.ports })] },
    { name: 'in a mesh of two', target: 0.5, start: () => startMesh(2, worker.ports) },
  ]
  try {
    for (const { name, target, start } of kinds) {
      progress(name)
      const gateways = await start()
      try {
        figures.push(...(await measure(name, gateways[0], target, Math.min(rounds, 3))))
      } finally {
        for (const gateway of gateways) await gateway.stop()
      }
    }
    return figures
  } finally {
    await worker.child.stop()
  }
}

export const idle: Scenario = {
  name: 'idle',
  question: 'what does a gateway without requests cost?',
  run,
}
