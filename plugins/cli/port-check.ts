/** Finds out before the boot whether a port is free. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { CliError } from './cli-error.ts'

export interface WantedPort {
  readonly host: string
  /** 0 takes any free one, so there is nothing to check. */
  readonly port: number
  /** What to change when it is taken, such as `--port`. */
  readonly flag: string
}

/**
 * Listeners of the server library share their port, so that a second process would join unnoticed; an ordinary
 * listener is refused instead.
 *
 * @throws CliError naming the port and the flag that changes it
 */
export async function checkPort({ host, port, flag }: WantedPort): Promise<void> {
  if (port === 0) return
  const server = createServer()
  server.listen({ host, port, exclusive: true })
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new CliError(explain((error as NodeJS.ErrnoException).code, host, port, flag), error)
  }
  server.close()
  await once(server, 'close')
}

function explain(code: string | undefined, host: string, port: number, flag: string): string {
  if (code === 'EADDRINUSE')
    return `port ${port} of ${host} is taken by another program; choose another one with ${flag}, or 0 for any free one`
  if (code === 'EACCES') return `port ${port} needs privileges; choose one above 1023 with ${flag}`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${host} is not an address of this machine; change it with --host`
  return `cannot listen on ${host}:${port} (${code ?? 'unknown reason'}); change it with ${flag}`
}
