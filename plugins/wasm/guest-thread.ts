/** What a pool thread does with a task. Loaded by threads that know nothing else of the gateway. */
import { threadId, workerData } from 'node:worker_threads'
import { DESCRIBE_EXPORT } from '../../wasm-sdk/abi.ts'
import { GuestInstance, type GuestSurroundings } from './guest-instance.ts'
import { GuestRunner } from './guest-runner.ts'
import {
  type DescribeTask,
  type GuestReply,
  type GuestTask,
  type GuestThreadData,
  type PhaseResult,
  PROGRESS_BASE,
  sharedClockMs,
} from './guest-task.ts'
import { runPhase } from './run-phase.ts'
import { runStream } from './run-stream.ts'
import { SharedState } from './shared-state.ts'

/** More names would let a guest fill the metrics. */
const MAX_COUNTED_NAMES = 32
/** Of a description, characters. */
const MAX_DESCRIPTION = 65_536

const data = workerData as GuestThreadData
const cells = new Int32Array(data.cells)
const countedNames = new Map<string, Set<string>>()

const surroundings: GuestSurroundings = {
  state: new SharedState(data.state, threadId),
  maxGuestBlockBytes: data.maxGuestBlockBytes,
  logLevel: data.logLevel,
  mayCount(module, name) {
    const names = countedNames.get(module) ?? new Set()
    countedNames.set(module, names)
    if (names.size < MAX_COUNTED_NAMES) names.add(name)
    return names.has(name)
  },
}
const runner = new GuestRunner(surroundings, data.reuseCalls)

/** Called by the pool, one task at a time. */
export async function runTask(task: GuestTask): Promise<GuestReply> {
  if (task.modules !== null) runner.learn(task.modules, task.live ?? [])
  if (!task.chain.every((uuid) => runner.has(uuid))) return { kind: 'missing' }
  const start = (progress: number) => {
    Atomics.store(cells, task.cell * 2 + 1, sharedClockMs())
    Atomics.store(cells, task.cell * 2, progress)
  }
  if (task.kind === 'stream') {
    const onStart = (item: number, module: number) => start(item * PROGRESS_BASE + module + 1)
    return { kind: 'stream', ...(await runStream(runner, task, onStart)) }
  }
  if (task.kind === 'describe') {
    start(1)
    return describe(task)
  }
  const items: PhaseResult[][] = []
  for (const [place, item] of task.items.entries()) {
    const onStart = (module: number) => start(place * PROGRESS_BASE + module + 1)
    items.push(await runPhase(runner, item, task.chain, onStart))
  }
  return { kind: 'phases', items }
}

async function describe({ chain, hasDescribe }: DescribeTask): Promise<GuestReply> {
  const [uuid] = chain
  try {
    const instance = await GuestInstance.open(runner.module(uuid), surroundings)
    const output = hasDescribe ? await instance.call(DESCRIBE_EXPORT, new Uint8Array(0), null) : null
    await instance.close()
    if (output !== null && output.length > MAX_DESCRIPTION)
      return { kind: 'describe', failure: 'the description is too long', json: null }
    return { kind: 'describe', failure: null, json: output && Buffer.from(output).toString('utf8') }
  } catch (error) {
    return { kind: 'describe', failure: error instanceof Error ? error.message : String(error), json: null }
  }
}
