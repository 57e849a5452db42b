/** Checks and finds TCP ports before the server library listens on them. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { BootError } from '../errors/boot-error.ts'

/**
 * Checks that a port is free. The server library listens with SO_REUSEPORT, so a second process would join the port
 * unnoticed; an ordinary listener is refused instead. Another process may still take the port before it is used.
 *
 * @param port 0 takes any free one, so there is nothing to check
 * @param setting what changes the port, such as `--port`
 * @param own listeners of this process, so that the message can name one
 * @throws BootError naming the port and the setting
 */
export async function assertPortFree(
  host: string,
  port: number,
  setting: string,
  own: readonly { readonly plugin: string; readonly url: string }[] = [],
): Promise<void> {
  const error = await tryPort(host, port)
  if (error === null) return
  const owner = own.find(({ url }) => url.endsWith(`:${port}`))
  throw new BootError(explain(error.code, host, port, setting, owner?.plugin), error)
}

/** Listens on a port for a moment. @returns the error; null if the port is free or 0 */
export async function tryPort(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  if (port === 0) return null
  const probe = createServer()
  probe.listen({ host, port, exclusive: true })
  try {
    await once(probe, 'listening')
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  probe.close()
  await once(probe, 'close')
  return null
}

function explain(
  code: string | undefined,
  host: string,
  port: number,
  setting: string,
  plugin: string | undefined,
): string {
  const owner = plugin === undefined ? 'another program' : `plugin ${plugin}`
  if (code === 'EADDRINUSE')
    return `port ${port} of ${host} is taken by ${owner}; choose another one with ${setting}, or 0 for any free one`
  if (code === 'EACCES') return `port ${port} needs privileges; choose one above 1023 with ${setting}`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${host} is not an address of this machine; listen on one that is, such as 127.0.0.1 or 0.0.0.0`
  return `cannot listen on ${host}:${port} (${code ?? 'unknown reason'}); change it with ${setting}`
}

/** A port that no other socket gets, except one that listens with SO_REUSEPORT as well. */
export interface HeldPort {
  readonly port: number
  release(): Promise<void>
}

/**
 * Finds a port and holds it until the threads that share it listen: otherwise a connection of any process may get it as its
 * own port while they start. The server library sets SO_REUSEPORT only for a port that it is given, so the port that the first
 * thread got for 0 cannot be joined by a second thread. Other systems than Linux only find the port. A port that clients know
 * already must not be held, because it would accept their connections.
 */
export async function holdFreePort(host: string): Promise<HeldPort> {
  const canShare = process.platform === 'linux'
  const server = createServer().listen({ host, port: 0, exclusive: true, reusePort: canShare })
  await once(server, 'listening')
  const held = (server.address() as AddressInfo).port
  const release = async () => {
    server.close()
    await once(server, 'close')
  }
  if (canShare) return { port: held, release }
  await release()
  return { port: held, release: async () => {} }
}
