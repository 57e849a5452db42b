/** Entry of pool threads: runs tasks. */
import { threadId, workerData } from 'node:worker_threads'
import { PhaseRun } from '../hooks/run-phase.ts'
import { describeModule, type Guest, Guests } from '../instances/guest.ts'
import { guestSurroundings } from '../instances/host-functions.ts'
import { POOL_WAIT_MS } from '../instances/shared-lock.ts'
import { SharedState } from '../instances/shared-state.ts'
import { openStreamRun } from '../streams/text-run.ts'
import {
  type GuestTask,
  type GuestTaskResult,
  type GuestThreadData,
  type PhaseResult,
  PROGRESS_BASE,
  type StreamItemResult,
  type StreamReport,
  sharedClockMs,
} from './guest-task.ts'

/** Maximum size of the events that one task returns, UTF-16 units. */
const MAX_TASK_UNITS = 4 * 1_048_576

const data = workerData as GuestThreadData
const cells = new Int32Array(data.cells)

const surroundings = guestSurroundings(new SharedState(data.state, threadId, POOL_WAIT_MS), data.logLevel)
const guests = new Guests({ surroundings, reuseCalls: data.reuseCalls })

/** Called by the pool, one task at a time. */
export async function runTask(task: GuestTask): Promise<GuestTaskResult> {
  if (task.modules !== null) guests.learn(task.modules, task.live ?? [])
  const chain: Guest[] = []
  for (const uuid of task.chain) {
    const guest = guests.get(uuid)
    if (guest === undefined) return { kind: 'missing' }
    chain.push(guest)
  }
  const start = (progress: number) => {
    Atomics.store(cells, task.cell * 2 + 1, sharedClockMs())
    Atomics.store(cells, task.cell * 2, progress)
  }
  if (task.kind === 'stream') {
    const reports: StreamReport[] = []
    const streams: StreamItemResult[] = []
    let writtenUnits = 0
    for (const [place, item] of task.items.entries()) {
      const { modules } = item
      const run = openStreamRun({
        item,
        guests: modules.map((module) => chain[module]),
        modules,
        reports,
        fuel: null,
        onStart: (one) => start(place * PROGRESS_BASE + modules[one] + 1),
      })
      await finish(run, item.tenant)
      const { result } = run
      streams.push(result)
      for (const { written } of result.out) writtenUnits += written?.data.length ?? 0
      // The rest is sent again later: the module may be suspended by then.
      if (writtenUnits > MAX_TASK_UNITS || run.hasExhausted) break
    }
    return { kind: 'stream', items: streams, reports }
  }
  if (task.kind === 'describe') {
    start(1)
    const started = await describeModule(chain[0].module, surroundings, task.hasDescribe)
    return { kind: 'describe', ...started }
  }
  const items: PhaseResult[][] = []
  for (const [place, item] of task.items.entries()) {
    const { modules } = item
    const run = new PhaseRun({
      item,
      guests: modules.map((module) => chain[module]),
      fuel: null,
      onStart: (one) => start(place * PROGRESS_BASE + modules[one] + 1),
    })
    await finish(run, item.input.request.tenant)
    const { results } = run
    items.push(results)
    // The rest is sent again: the module may be suspended by then.
    if (results.some(({ failure }) => failure?.kind === 'fuel')) break
  }
  return { kind: 'phases', items }
}

/** Runs to the end and creates missing instances. */
async function finish(
  run: PhaseRun | ReturnType<typeof openStreamRun>,
  tenant: string | null,
): Promise<void> {
  for (let missing = run.next(); missing !== null; missing = run.next()) await missing.open(tenant)
}
