/** Finds a port that several threads can share, when the configuration leaves the choice to the system. */
import { createServer } from 'node:net'

/**
 * A TCP port that is free now. Threads share a port by SO_REUSEPORT, which the server library sets only on ports
 * that it is told: a port that the first thread got for 0 cannot be joined by a second. So it is chosen beforehand.
 *
 * @returns the port; another process may take it before it is used, which shows as a failure to listen
 */
export function findFreePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const address = server.address()
      server.close(() => {
        if (address === null || typeof address === 'string') reject(new Error('no TCP address'))
        else resolve(address.port)
      })
    })
  })
}
