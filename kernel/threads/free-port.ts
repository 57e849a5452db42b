/** Finds a port that several threads can share, when the configuration leaves the choice to the system. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/**
 * A TCP port that is free now. Threads share a port by SO_REUSEPORT, which the server library sets only on ports
 * that it is told: a port that the first thread got for 0 cannot be joined by a second. So it is chosen beforehand.
 *
 * @returns the port; another process may take it before it is used, which shows as a failure to listen
 */
export async function findFreePort(host: string): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
