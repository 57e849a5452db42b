/** A module that never ends: is its request let go in time, and do the others notice? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { runLoad } from '../support/load.ts'
import { wait } from '../support/process.ts'
import { chatBody, REQUEST_HEADERS } from '../support/request-bytes.ts'
import { startWasmGateway } from '../support/wasm-gateway.ts'
import { withGuests } from '../support/wasm-relay.ts'

const DEADLINE_MS = 250
const OTHERS_PER_SECOND = 500
/** The client opens its connections first; the loop begins when its load runs. */
const HEAD_START_MS = 600

function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  return withGuests(['loop'], progress, async (guests, worker) => {
    const modules = [
      { guest: 'loop', point: 'OnRequest', instance: 'reuse', timeoutMs: DEADLINE_MS },
    ] as const
    // One thread loops, the other goes on: with one alone everybody waits for the deadline.
    const gateway = await startWasmGateway({ workerPort: worker.port, guests, modules, poolThreads: 2 })
    const load = { connections: 32, rate: OTHERS_PER_SECOND }
    const endedMs: number[] = []
    const othersP99Ms: number[] = []
    try {
      await runLoad('paced-load.ts', gateway, { ...load, seconds: 2 })
      for (let round = 0; round < rounds; round++) {
        progress(`round ${round + 1}/${rounds}`)
        const others = runLoad('paced-load.ts', gateway, { ...load, seconds: 1 })
        await wait(HEAD_START_MS)
        endedMs.push(await timeLoop(gateway.port))
        const { report } = await others
        othersP99Ms.push(report.p99Micros / 1_000)
        // The thread that was ended has a successor by then.
        await wait(1_000)
      }
      const { failed } = await gateway.calls()
      if (failed < rounds) throw new Error(`${rounds} requests should have looped, ${failed} did`)
    } finally {
      await gateway.stop()
    }
    return [
      {
        name: 'end of the looping request',
        unit: 'ms',
        values: endedMs,
        target: DEADLINE_MS + 150,
        note: `the module may run for ${DEADLINE_MS} ms; it fails open, so the request is then answered`,
      },
      {
        name: 'p99 of the others',
        unit: 'ms',
        values: othersP99Ms,
        target: 50,
        note: `${OTHERS_PER_SECOND} requests/s through the same module, in the second of the loop; two pool threads`,
      },
    ]
  })
}

/** @returns milliseconds until its answer is there @throws when it is not 200 */
async function timeLoop(port: number): Promise<number> {
  const startedAtMs = performance.now()
  const reply = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...REQUEST_HEADERS, 'x-bench-loop': '1' },
    body: chatBody({ stream: false, bodyBytes: 250 }),
  })
  await reply.arrayBuffer()
  if (!reply.ok) throw new Error(`the looping request got ${reply.status}`)
  return performance.now() - startedAtMs
}

export const wasmLoop: Scenario = {
  name: 'wasm-loop',
  question: 'does a module that never ends disturb others?',
  run,
}
