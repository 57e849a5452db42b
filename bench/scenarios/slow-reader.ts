/** A client that reads slower than the worker writes: does the gateway hold the difference in memory? */
import { BULK_EVENTS, bulkEvent } from '../support/bulk-stream.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { runLoad } from '../support/load.ts'
import { wait } from '../support/process.ts'
import { BYTES_PER_MS, readSlowly } from '../support/slow-read.ts'
import { startWorker } from '../support/subject.ts'

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const growths: number[] = []
  const differences: number[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      const gateway = await startGateway({ workerPorts: [worker.port] })
      try {
        // Short streams first: code is compiled and the heap has its working size.
        await runLoad('sse-load.ts', gateway, { streams: 8, seconds: 1 })
        await wait(500)
        const { growth, isIdentical } = await readSlowly(gateway)
        growths.push(growth / 1_000_000)
        differences.push(isIdentical ? 0 : 1)
      } finally {
        await gateway.stop()
      }
    }
  } finally {
    await worker.child.stop()
  }
  const totalMiB = (BULK_EVENTS * bulkEvent(0).length) / 1_048_576
  return [
    {
      name: 'memory growth',
      unit: 'MB',
      values: growths,
      target: 10,
      note: `${totalMiB} MiB read at ${(BYTES_PER_MS / 1_000).toFixed(0)} MB/s; highest sample minus the value before`,
    },
    { name: 'streams that differ by hash', unit: '', values: differences, target: 0 },
  ]
}

export const slowReader: Scenario = {
  name: 'slow-reader',
  question: 'does a slow client make the gateway grow, and does it get every byte?',
  run,
}
