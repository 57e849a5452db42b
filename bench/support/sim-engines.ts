/** Simulated engines that batch and cache prefixes, all in one process: the product's own `weir sim`. */
import { startWeir } from './gateway.ts'
import { freePort, waitUntil } from './process.ts'

export interface SimEngines {
  readonly ports: readonly number[]
  stop(): Promise<void>
}

/** @param tokens length of an answer that nobody limits */
export async function startSimEngines(count: number, tokens: number): Promise<SimEngines> {
  const first = await freePort()
  const ports = Array.from({ length: count }, (_, index) => first + index)
  const child = startWeir([
    ...['sim', '--engine', 'batched', '--model', 'bench', '--no-record', '--log-level', 'warn'],
    ...['--count', String(count), '--port', String(first), '--tokens', String(tokens)],
  ])
  const answers = async () => (await fetch(`http://127.0.0.1:${ports[count - 1]}/health`)).ok
  await waitUntil('the simulated engines listen', 10_000, answers).catch(async (error: Error) => {
    await child.stop()
    throw new Error(`${error.message}\n${child.errors()}`)
  })
  return { ports, stop: () => child.stop() }
}
