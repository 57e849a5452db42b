/** Sends the same load to the gateways of two checkouts by turns and compares the CPU time of their requests. */
import { type CompareOptions, type Figure, ratios } from './figure.ts'
import { cpuPerRequest, type LoadResult, runLoad, warmUp } from './load.ts'
import { type RunningWorker, type Subject, startWorker } from './subject.ts'

/** Short, because the speed of a shared machine changes within a second. */
const TURN_MS = 100

/** What a scenario compares. */
export interface Workload {
  /** @param root of the checkout whose gateway is started; null for this one */
  start(root: string | null, worker: RunningWorker): Promise<Subject>
  /** File of the load client. */
  readonly client: string
  readonly load: Readonly<Record<string, number>>
  /** Number of simulated workers. Default 1. */
  readonly workers?: number
}

/** Figures of the other checkout, of this one, and their ratio, which is the last. */
export async function compareCheckouts(workload: Workload, options: CompareOptions): Promise<Figure[]> {
  const { rounds, seconds, progress } = options
  const worker = await startWorker('worker.ts', workload.workers)
  const gateways: Subject[] = []
  try {
    for (const root of [options.against, null]) gateways.push(await workload.start(root, worker))
    progress('warm-up')
    for (const gateway of gateways)
      await warmUp((length) => runLoad(workload.client, gateway, { ...workload.load, seconds: length }))
    const results: (readonly LoadResult[])[] = []
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      results.push(await runByTurns(workload, gateways, seconds))
    }
    const [before, now] = gateways.map((_, at) => cpuPerRequest(results.map((round) => round[at])))
    return comparison('CPU per request', 'µs', before, now)
  } finally {
    for (const subject of gateways.reverse()) await subject.stop()
    await worker.child.stop()
  }
}

/**
 * One load client per gateway, of which all but one are stopped at any time: whatever else the machine does meets all
 * gateways alike. @param seconds for which each client runs
 */
async function runByTurns(
  { client, load }: Workload,
  gateways: readonly Subject[],
  seconds: number,
): Promise<LoadResult[]> {
  const running: number[] = []
  const options = { ...load, seconds: seconds * gateways.length }
  const loads = gateways.map((gateway) => {
    let own = 0
    return runLoad(client, gateway, options, (pid) => {
      own = pid
      running.push(pid)
    }).finally(() => running.splice(running.indexOf(own), 1))
  })
  const turns = setInterval(() => {
    const next = running.shift()
    if (next === undefined) return
    for (const pid of running) process.kill(pid, 'SIGSTOP')
    process.kill(next, 'SIGCONT')
    running.push(next)
  }, TURN_MS)
  return Promise.all(loads).finally(() => clearInterval(turns))
}

export function comparison(
  what: string,
  unit: string,
  before: readonly number[],
  now: readonly number[],
): Figure[] {
  return [
    { name: `${what}, before`, unit, values: before },
    { name: `${what}, now`, unit, values: now },
    { name: `${what}, now / before`, unit: '×', values: ratios(now, before) },
  ]
}
