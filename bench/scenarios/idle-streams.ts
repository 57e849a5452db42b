/** Memory of thousands of open, silent streams. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { openFileLimit, rssBytes, startScript, wait } from '../support/process.ts'
import { type Subject, startWorker } from '../support/subject.ts'

const MAX_STREAMS = 10_000
/** Open files of a gateway apart from its streams. */
const OTHER_FILES = 300
/** Long enough for two heartbeats on every stream. */
const HOLD_MS = 12_000

/** Each stream takes two open files of the gateway: client and worker. */
function affordableStreams(): number {
  return Math.min(MAX_STREAMS, Math.floor((openFileLimit() - OTHER_FILES) / 2))
}

async function openStreams(gateway: Subject, streams: number, holdMs: number) {
  const before = rssBytes(gateway.pid)
  const client = startScript('idle-load.ts', { port: gateway.port, streams })
  await client.report()
  await wait(holdMs)
  const perStream = (rssBytes(gateway.pid) - before) / streams
  process.kill(client.pid, 'SIGUSR2')
  const { lost } = await client.report()
  await client.stop()
  return { perStream, lost: Number(lost) }
}

async function run({ progress }: RunOptions): Promise<Figure[]> {
  const streams = affordableStreams()
  const worker = await startWorker('silent-worker.ts')
  const gateway = await startGateway({ workerPorts: [worker.port] })
  try {
    // The first streams also include compilation and the first growth of the heap.
    await openStreams(gateway, 100, 200)
    await wait(500)
    progress(`${streams} streams, held for ${HOLD_MS / 1_000} s`)
    const { perStream, lost } = await openStreams(gateway, streams, HOLD_MS)
    const note =
      streams < MAX_STREAMS
        ? `${streams} streams instead of ${MAX_STREAMS}: this shell allows ${openFileLimit()} open files (ulimit -n)`
        : `${streams} streams`
    return [
      { name: 'memory per silent stream', unit: 'KB', values: [perStream / 1_000], target: 30, note },
      { name: 'streams that were closed early', unit: '', values: [lost], target: 0 },
    ]
  } finally {
    await gateway.stop()
    await worker.child.stop()
  }
}

export const idleStreams: Scenario = {
  name: 'idle-streams',
  question: 'how much memory does an open, silent stream hold?',
  run,
}
