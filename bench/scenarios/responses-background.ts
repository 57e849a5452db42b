/** Memory of thousands of open background responses. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { callGateway, startGateway } from '../support/gateway.ts'
import { openFileLimit, rssBytes, temporaryDirectory, wait, waitUntil } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const MAX_RESPONSES = 10_000
/** Open files of a gateway apart from the connections to its worker. */
const OTHER_FILES = 300
const CREATING_AT_ONCE = 64
const START_LIMIT_MS = 180_000
/** Time to write the last status changes and to release memory. */
const SETTLE_MS = 5_000
/** No response waits in the queue. */
const BACKGROUND = { maxRunning: 100_000, maxRunningPerTenant: 100_000, maxWaitingPerTenant: 100_000 }

async function create(port: number, count: number): Promise<void> {
  let left = count
  const lane = async () => {
    while (left-- > 0) {
      const body = { model: 'bench', input: 'How are you today? '.repeat(10), background: true }
      const response = await callGateway(port, 'POST', '/v1/responses', body)
      const text = await response.text()
      if (!response.ok) throw new Error(`not accepted: ${text}`)
    }
  }
  await Promise.all(Array.from({ length: CREATING_AT_ONCE }, lane))
}

async function countOpen(port: number): Promise<number> {
  const response = await callGateway(port, 'GET', '/workers')
  const { workers } = (await response.json()) as { workers: { load: number }[] }
  return workers.reduce((sum, { load }) => sum + load, 0)
}

async function run({ progress }: RunOptions): Promise<Figure[]> {
  const count = Math.min(MAX_RESPONSES, openFileLimit() - OTHER_FILES)
  const worker = await startWorker('silent-worker.ts')
  const dir = temporaryDirectory()
  const gateway = await startGateway({
    workerPorts: [worker.port],
    plugins: { storage: { dir }, history: {}, responses: { background: BACKGROUND } },
  })
  try {
    const reach = async (total: number, more: number) => {
      await create(gateway.port, more)
      await waitUntil(`${total} responses are open`, START_LIMIT_MS, async () => {
        return (await countOpen(gateway.port)) >= total
      })
      await wait(SETTLE_MS)
      return rssBytes(gateway.pid)
    }
    // The first responses also include compilation and the first growth of the heap.
    const before = await reach(500, 500)
    progress(`${count} background responses`)
    const after = await reach(500 + count, count)
    return [
      {
        name: 'memory per open background response',
        unit: 'KB',
        values: [(after - before) / count / 1_000],
        target: 30,
        note: `${count} of one tenant; the worker has sent one delta of each`,
      },
    ]
  } finally {
    await gateway.stop()
    await worker.child.stop()
  }
}

export const responsesBackground: Scenario = {
  name: 'responses-background',
  question: 'how much memory does an open background response hold?',
  run,
}
