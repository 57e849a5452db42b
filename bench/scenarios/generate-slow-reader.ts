/** A client that reads a generation slower than the worker writes it: events must not pile up between the two. */
import { BULK_EVENTS, bulkTextSha256 } from '../support/bulk-stream.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { runLoad } from '../support/load.ts'
import { wait } from '../support/process.ts'
import { BYTES_PER_MS, readSlowly } from '../support/slow-read.ts'
import { startWorker } from '../support/subject.ts'

const MIB_A_TEXT = 16_384 / 1_048_576

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const growths: number[] = []
  const differences: number[] = []
  const plugins = { chat: { chat: 'normalize' } }
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      const gateway = await startGateway({ workerPorts: [worker.port], plugins })
      try {
        // Short streams first: code is compiled, and the young heap, which this one would fill as well, has its size.
        // Streams first: code is compiled, and the young heap has the size that it takes once under any such load, 15 MB.
        await runLoad('sse-load.ts', gateway, { streams: 64, seconds: 3, exact: 0 })
        await wait(500)
        const { growth, isIdentical } = await readSlowly(gateway, ['--text', '1'], bulkTextSha256())
        growths.push(growth / 1_000_000)
        differences.push(isIdentical ? 0 : 1)
      } finally {
        await gateway.stop()
      }
    }
  } finally {
    await worker.child.stop()
  }
  const speed = (BYTES_PER_MS / 1_000).toFixed(0)
  return [
    {
      name: 'memory growth',
      unit: 'MB',
      values: growths,
      target: 10,
      note: `${BULK_EVENTS * MIB_A_TEXT} MiB of text read at ${speed} MB/s; highest sample minus the value before`,
    },
    { name: 'texts that differ by hash', unit: '', values: differences, target: 0 },
  ]
}

export const generateSlowReader: Scenario = {
  name: 'generate-slow-reader',
  question: 'does a slow client of a generation make the gateway grow, and does it get all of the text?',
  run,
}
