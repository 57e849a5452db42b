/** Entry of the thread that runs the guest of a runner, so that a guest that does not return can be terminated. */
import { createHash } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { GuestInstance, LimitBroken } from '../instances/guest-instance.ts'
import { guestSurroundings } from '../instances/guest-surroundings.ts'
import { SHORT_WAIT_MS } from '../instances/shared-lock.ts'
import { SharedState } from '../instances/shared-state.ts'
import { GUEST_OWNER, type ThreadCall, type ThreadData, type ThreadResult } from './runner-worker.ts'

const BLOCK_BYTES = 32

const { module, state: memory, seed } = workerData as ThreadData
let nowMs = 0
let randomBlocks = 0
const state = new SharedState(memory, GUEST_OWNER, SHORT_WAIT_MS, () => nowMs)
const surroundings = guestSurroundings(state, 'debug', { nowMs: () => nowMs, randomBytes })
/** Warm instances by tenant. */
const warm = new Map<string | null, GuestInstance>()

parentPort?.on('message', async (call: ThreadCall) => parentPort?.postMessage(await run(call)))
parentPort?.postMessage('ready')

async function run({ exportName, input, tenant, fuel, ...call }: ThreadCall): Promise<ThreadResult> {
  nowMs = call.nowMs
  const isFresh = call.instance === 'fresh'
  const place = call.instance === 'shared' ? null : tenant
  let instance: GuestInstance | null = null
  let output: Uint8Array | null = null
  let problem: string | null = null
  let isOutOfFuel = false
  let elapsedMs = 0
  try {
    instance = (isFresh ? undefined : warm.get(place)) ?? (await GuestInstance.open(module, surroundings))
    if (!isFresh) warm.set(place, instance)
    const begin = performance.now()
    try {
      if (exportName !== null) output = instance.call(exportName, input, tenant, fuel)
    } finally {
      elapsedMs = performance.now() - begin
      instance.reset()
    }
  } catch (cause) {
    problem = (cause as Error).message
    isOutOfFuel = cause instanceof LimitBroken && cause.limit === 'fuel'
    // The globals of an instance that trapped are undefined.
    warm.delete(place)
  }
  return {
    output,
    problem,
    isOutOfFuel,
    logs: instance?.log.lines.map(([level, text]) => ({ level, text })) ?? [],
    counted: [...(instance?.counted ?? [])],
    elapsedMs,
    fuel: instance?.burntFuel ?? 0,
    memoryBytes: instance?.memoryBytes ?? 0,
  }
}

/** The same seed gives the same bytes. */
function randomBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(count)
  for (let i = 0; i < count; i += BLOCK_BYTES) {
    const block = createHash('sha256').update(`${seed}:${randomBlocks++}`).digest()
    bytes.set(block.subarray(0, count - i), i)
  }
  return bytes
}
