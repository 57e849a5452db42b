/** Clients that read more slowly than the worker writes: back-pressure must bound the memory of the gateway. */
import { BULK_BYTES, bulkSha256, bulkTextSha256 } from '../support/bulk-stream.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { runLoad } from '../support/load.ts'
import { wait } from '../support/process.ts'
import { BYTES_PER_MS, readSlowly } from '../support/slow-read.ts'
import { startWorker } from '../support/subject.ts'

interface SlowStream {
  readonly plugins: Readonly<Record<string, unknown>>
  /** Load before the measurement: it compiles the code and lets the young heap reach its working size. */
  readonly warmUp: Readonly<Record<string, number>>
  /** Options of the slow client. */
  readonly read: Readonly<Record<string, number>>
  readonly expectedSha256: string
}

async function measureSlowReader(
  { plugins, warmUp, read, expectedSha256 }: SlowStream,
  { rounds, progress }: RunOptions,
): Promise<Figure[]> {
  const worker = await startWorker()
  const growths: number[] = []
  const differences: number[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      const gateway = await startGateway({ workerPorts: [worker.port], plugins })
      try {
        await runLoad('sse-load.ts', gateway, warmUp)
        await wait(500)
        const { growth, isIdentical } = await readSlowly(gateway, expectedSha256, read)
        growths.push(growth / 1_000_000)
        differences.push(isIdentical ? 0 : 1)
      } finally {
        await gateway.stop()
      }
    }
  } finally {
    await worker.child.stop()
  }
  return [
    {
      name: 'memory growth',
      unit: 'MB',
      values: growths,
      target: 10,
      note: `${BULK_BYTES / 1_048_576} MiB read at ${(BYTES_PER_MS / 1_000).toFixed(0)} MB/s; highest sample minus the value before`,
    },
    { name: 'streams that differ by hash', unit: '', values: differences, target: 0 },
  ]
}

export const slowReader: Scenario = {
  name: 'slow-reader',
  question: 'does a slow client make the gateway grow, and does it receive every byte?',
  run: (options) =>
    measureSlowReader(
      { plugins: {}, warmUp: { streams: 8, seconds: 1 }, read: {}, expectedSha256: bulkSha256() },
      options,
    ),
}

export const generateSlowReader: Scenario = {
  name: 'generate-slow-reader',
  question: 'does a slow client of a generation make the gateway grow, and does it receive all of the text?',
  run: (options) =>
    measureSlowReader(
      {
        plugins: { chat: { chat: 'normalize' } },
        warmUp: { streams: 64, seconds: 3, exact: 0 },
        read: { text: 1 },
        expectedSha256: bulkTextSha256(),
      },
      options,
    ),
}
