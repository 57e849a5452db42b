/** Ports for servers that must know theirs before they start. */
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ephemeral ports, so that a released port stays free. */
const QUIET_PORTS = { from: 20_000, count: 10_000 }

/** A port that is free now, and that no client connection takes meanwhile. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = QUIET_PORTS.from + Math.floor(Math.random() * QUIET_PORTS.count)
    if (await isFree(port)) return port
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
