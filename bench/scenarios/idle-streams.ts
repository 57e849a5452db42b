/** Thousands of open streams that say nothing: how much memory does each hold? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { openFileLimit, rssBytes, startScript, wait } from '../support/process.ts'
import { type Subject, startWorker } from '../support/subject.ts'

const WANTED_STREAMS = 10_000
/** Files that a gateway holds besides its streams. */
const OTHER_FILES = 300
/** Long enough for two heartbeats on every stream. */
const HOLD_MS = 12_000

/** Each stream is two open files of the gateway: one to the client, one to the worker. */
function affordableStreams(): number {
  return Math.min(WANTED_STREAMS, Math.floor((openFileLimit() - OTHER_FILES) / 2))
}

async function openStreams(gateway: Subject, streams: number, holdMs: number) {
  const before = rssBytes(gateway.pid)
  const client = startScript(new URL('../support/idle-load.ts', import.meta.url), [
    '--port',
    String(gateway.port),
    '--streams',
    String(streams),
  ])
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
    // The first streams also pay for compiled code and for the heap's first growth.
    await openStreams(gateway, 100, 200)
    await wait(500)
    progress(`${streams} streams, held for ${HOLD_MS / 1_000} s`)
    const { perStream, lost } = await openStreams(gateway, streams, HOLD_MS)
    const note =
      streams < WANTED_STREAMS
        ? `${streams} streams instead of ${WANTED_STREAMS}: this shell allows ${openFileLimit()} open files (ulimit -n)`
        : `${streams} streams`
    return [
      { name: 'memory per silent stream', unit: 'KB', values: [perStream / 1_000], target: 30, note },
      { name: 'streams lost in the silence', unit: '', values: [lost], target: 0 },
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
