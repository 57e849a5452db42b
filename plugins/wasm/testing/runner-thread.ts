/** Entry of the thread that a runner's guest lives in, so that a guest that never returns can be stopped with it. */
import { parentPort, workerData } from 'node:worker_threads'
import { GuestInstance, type GuestSurroundings, LimitBroken } from '../instances/guest-instance.ts'
import { MAX_COUNTED_NAMES } from '../instances/guest-surroundings.ts'
import { hostFunctions } from '../instances/host-functions.ts'
import { HostState } from './host-state.ts'
import type { ThreadCall, ThreadData, ThreadResult } from './runner-worker.ts'

const { module, snapshot, seed } = workerData as ThreadData
const state = new HostState(snapshot, seed)
/** By tenant, as the gateway keeps them. */
const warm = new Map<string | null, GuestInstance>()

const host = {
  state,
  nowMs: () => state.nowMs,
  randomBytes: (count: number) => state.randomBytes(count),
  mayCount: (_: string, name: string) => state.mayCount(name, MAX_COUNTED_NAMES),
}

const surroundings: GuestSurroundings = {
  // Log lines of every level: the runner shows them all.
  logLevel: 0,
  hostFunctions: (facts) => hostFunctions(host, facts),
}

parentPort?.on('message', async (call: ThreadCall) => parentPort?.postMessage(await run(call)))
parentPort?.postMessage('ready')

async function run({
  exportName,
  input,
  nowMs,
  tenant,
  instance: mode,
  fuel,
}: ThreadCall): Promise<ThreadResult> {
  state.nowMs = nowMs
  const place = mode === 'shared' ? null : tenant
  let instance: GuestInstance | null = null
  let output: Uint8Array | null = null
  let problem: string | null = null
  let isOutOfFuel = false
  let elapsedMs = 0
  try {
    instance =
      (mode === 'fresh' ? undefined : warm.get(place)) ?? (await GuestInstance.open(module, surroundings))
    if (mode !== 'fresh') warm.set(place, instance)
    const begin = performance.now()
    try {
      if (exportName !== null) output = instance.call(exportName, input, tenant, fuel)
    } finally {
      elapsedMs = performance.now() - begin
      state.addMetrics(instance.counted)
      instance.reset()
    }
  } catch (cause) {
    problem = (cause as Error).message
    isOutOfFuel = cause instanceof LimitBroken && cause.limit === 'fuel'
    // The globals of an instance that trapped are in no known state.
    warm.delete(place)
  }
  return {
    output,
    problem,
    isOutOfFuel,
    logs: instance?.log.lines.map(([level, text]) => ({ level, text })) ?? [],
    elapsedMs,
    fuel: instance?.burntFuel ?? 0,
    memoryBytes: instance?.memoryBytes ?? 0,
    snapshot: state.snapshot(),
  }
}
