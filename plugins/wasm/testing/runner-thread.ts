/** Entry of the thread that runs the guest of a runner, so that a guest that does not return can be terminated. */
import { createHash } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { describeModule, Guest } from '../instances/guest.ts'
import { guestSurroundings } from '../instances/host-functions.ts'
import { SHORT_WAIT_MS } from '../instances/shared-lock.ts'
import { SharedState } from '../instances/shared-state.ts'
import {
  GUEST_OWNER,
  type ThreadCall,
  type ThreadData,
  type ThreadRequest,
  type ThreadResult,
} from './runner-worker.ts'

const BLOCK_BYTES = 32

const { module, state: memory, seed, reuseCalls } = workerData as ThreadData
let nowMs = 0
let randomBlocks = 0
let memoryBytes = 0
const state = new SharedState(memory, GUEST_OWNER, SHORT_WAIT_MS, () => nowMs)
const surroundings = guestSurroundings(state, 'debug', { nowMs: () => nowMs, randomBytes })
const guest = new Guest(module, {
  surroundings,
  reuseCalls,
  onCalled: (instance) => {
    memoryBytes = instance.memoryBytes
  },
})

parentPort?.on('message', async (request: ThreadRequest) => {
  const isCall = 'exportName' in request
  parentPort?.postMessage(
    isCall ? await run(request) : await describeModule(module, surroundings, request.hasDescribe),
  )
})
parentPort?.postMessage('ready')

async function run({ nowMs: calledAtMs, ...call }: ThreadCall): Promise<ThreadResult> {
  nowMs = calledAtMs
  memoryBytes = 0
  if (!guest.isReady(call.tenant)) await guest.open(call.tenant)
  const { value, report } = guest.call({ ...call, read: (output) => output && Uint8Array.from(output) })
  return { output: value, report, memoryBytes }
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
