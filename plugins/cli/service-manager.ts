/** Reports the state of the service to systemd if the unit is of `Type=notify`. @source sd_notify(3) */
import { execFile } from 'node:child_process'

export type ServiceState = 'ready' | 'stopping'

/** Longer than a message takes on any machine. */
const TIMEOUT_MS = 10_000

export class ServiceManager {
  readonly #socket: string | undefined

  /** Takes the socket out of the environment, so that no other program that this process starts speaks for it. */
  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#socket = env.NOTIFY_SOCKET || undefined
    delete env.NOTIFY_SOCKET
  }

  /**
   * Sent by systemd's own program, since Node has no datagram sockets of that kind; old ones know no `--stopping`.
   *
   * @returns why it could not be told; null when it was, or nobody wants to know. Never rejects
   */
  tell(state: ServiceState): Promise<string | null> {
    if (this.#socket === undefined) return Promise.resolve(null)
    const env = { ...process.env, NOTIFY_SOCKET: this.#socket }
    return new Promise((resolve) => {
      execFile('systemd-notify', [`${state.toUpperCase()}=1`], { env, timeout: TIMEOUT_MS }, (error) =>
        resolve(error === null ? null : error.message),
      )
    })
  }
}
