/** Waits until a registered worker is ready, and prints the progress. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../../../cli/cli-error.ts'
import { type GatewayClient, GatewayRefusal } from '../../../cli/gateway-client.ts'
import { printable } from '../../../cli/table.ts'
import type { Accepted, WorkerRecord } from './worker-replies.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/**
 * Polls with growing pauses; each change of state is a line on standard error.
 *
 * @param limitMs longest wait, in milliseconds
 * @throws CliError when the registration fails, the worker disappears or the time is over
 */
export async function waitForWorker(
  client: GatewayClient,
  { worker_id: id, url }: Accepted,
  limitMs: number,
): Promise<WorkerRecord> {
  const startedAtMs = Date.now()
  let shown = ''
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)) {
    const worker = await read(client, id, url)
    const elapsedMs = Date.now() - startedAtMs
    const state = stateOf(worker)
    if (state !== shown) console.error(`${url}: ${state} (${(elapsedMs / 1000).toFixed(1)} s)`)
    shown = state
    if (worker.status === 'ready') return worker
    if (worker.status === 'failed' || worker.job_status?.status === 'failed') {
      const reason = printable(worker.job_status?.message ?? 'its health checks fail')
      throw new CliError(
        `${url} did not become ready: ${reason}\n  remove it with: weir workers remove ${id}`,
      )
    }
    if (elapsedMs + pauseMs > limitMs)
      throw new CliError(`${url} is not ready after ${limitMs} ms; it is still being registered as ${id}`)
    await sleep(pauseMs)
  }
}

async function read(client: GatewayClient, id: string, url: string): Promise<WorkerRecord> {
  try {
    return (await client.call('GET', `/workers/${encodeURIComponent(id)}`)) as WorkerRecord
  } catch (error) {
    if (error instanceof GatewayRefusal && error.status === 404)
      throw new CliError(`${url} was removed before it was ready`, error)
    throw error
  }
}

function stateOf({ status, job_status: job }: WorkerRecord): string {
  if (job === undefined) return status
  return job.message === null
    ? `${status}, registration ${job.status}`
    : `${status}, ${printable(job.message)}`
}
