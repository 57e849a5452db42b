/** Thousands of background responses under way at once: how much memory does each hold? */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { callGateway, startGateway } from '../support/gateway.ts'
import { openFileLimit, rssBytes, wait, waitUntil } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const WANTED = 10_000
/** Files that a gateway holds besides the connections to its worker. */
const OTHER_FILES = 300
const CREATING_AT_ONCE = 64
const START_LIMIT_MS = 180_000
/** The last changes of status are on disk then, and what making them needed is given back. */
const SETTLE_MS = 5_000
/** As many as there are may run, so that none of them waits. */
const BACKGROUND = { maxRunning: 100_000, maxRunningPerTenant: 100_000, maxWaitingPerTenant: 100_000 }

async function create(port: number, count: number): Promise<void> {
  let left = count
  const lane = async () => {
    while (left-- > 0) {
      const body = { model: 'bench', input: 'How are you today? '.repeat(10), background: true }
      const reply = await callGateway(port, 'POST', '/v1/responses', body)
      if (!reply.ok) throw new Error(`not accepted: ${await reply.text()}`)
      await reply.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: CREATING_AT_ONCE }, lane))
}

async function underWay(port: number): Promise<number> {
  const reply = await callGateway(port, 'GET', '/workers')
  const { workers } = (await reply.json()) as { workers: { load: number }[] }
  return workers.reduce((sum, { load }) => sum + load, 0)
}

async function run({ progress }: RunOptions): Promise<Figure[]> {
  const count = Math.min(WANTED, openFileLimit() - OTHER_FILES)
  const worker = await startWorker('silent-worker.ts')
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-store-'))
  const gateway = await startGateway({
    workerPorts: [worker.port],
    plugins: { storage: { dir }, history: {}, responses: { background: BACKGROUND } },
  })
  try {
    const reach = async (total: number, more: number) => {
      await create(gateway.port, more)
      await waitUntil(`${total} are under way`, START_LIMIT_MS, async () => {
        return (await underWay(gateway.port)) >= total
      })
      await wait(SETTLE_MS)
      return rssBytes(gateway.pid)
    }
    // The first ones also pay for compiled code and for the heap's first growth.
    const before = await reach(500, 500)
    progress(`${count} background responses`)
    const after = await reach(500 + count, count)
    return [
      {
        name: 'memory per open background response',
        unit: 'KB',
        values: [(after - before) / count / 1_000],
        target: 30,
        note: `${count} of one tenant, each with a worker that has said one word of its answer`,
      },
    ]
  } finally {
    await gateway.stop()
    await worker.child.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

export const responsesBackground: Scenario = {
  name: 'responses-background',
  question: 'how much memory does an open background response hold?',
  run,
}
