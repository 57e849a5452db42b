/** Ports for servers that must know theirs before they start. */
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ephemeral ports, so that a released port stays free. Each worker of the test run has its own. */
const PORTS_PER_WORKER = 1_000
const found = new Set<number>()

/** A port that is free now, and that neither a client connection nor another test takes meanwhile. */
export async function freePort(): Promise<number> {
  const first = 20_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % 10) * PORTS_PER_WORKER
  for (;;) {
    const port = first + Math.floor(Math.random() * PORTS_PER_WORKER)
    if (found.has(port) || !(await isFree(port))) continue
    found.add(port)
    return port
  }
}

/** False if anything listens on the port. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen({ port, host: '127.0.0.1', exclusive: true })
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
