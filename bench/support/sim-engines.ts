/** Starts `weir sim`: engines with batching and prefix caches, all in one process. */
import { startWeir } from './gateway.ts'
import { StopWaiting, waitUntil } from './process.ts'

export interface SimEngines {
  readonly ports: readonly number[]
  stop(): Promise<void>
}

/** Below the ephemeral ports of Linux. */
const FIRST_PORT = 12_000
const LAST_PORT = 32_000
const ATTEMPTS = 5

/** @param tokens length of an answer without a limit in the request */
export async function startSimEngines(count: number, tokens: number): Promise<SimEngines> {
  for (let attempt = 1; ; attempt++) {
    const first = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT - count))
    try {
      return await startOnPorts(
        Array.from({ length: count }, (_, index) => first + index),
        tokens,
      )
    } catch (error) {
      // `weir sim` needs consecutive ports; another range may be free.
      if (attempt === ATTEMPTS || !String(error).includes('is taken by another program')) throw error
    }
  }
}

async function startOnPorts(ports: readonly number[], tokens: number): Promise<SimEngines> {
  const child = startWeir([
    ...['sim', '--timing', 'batched', '--model', 'bench', '--no-record', '--log-level', 'warn'],
    ...['--count', String(ports.length), '--port', String(ports[0]), '--tokens', String(tokens)],
  ])
  const last = `http://127.0.0.1:${ports[ports.length - 1]}/health`
  await waitUntil('the simulated engines listen', 10_000, async () => {
    if (!child.isRunning()) throw new StopWaiting('the simulated engines ended')
    return (await fetch(last)).ok
  }).catch(async (error: Error) => {
    await child.stop()
    throw new Error(`${error.message}\n${child.errors()}`)
  })
  return { ports, stop: () => child.stop() }
}
