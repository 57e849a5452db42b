/** Reports the state of the service to systemd if the unit is of `Type=notify`. @source sd_notify(3) */
import { execFile } from 'node:child_process'

export type ServiceState = 'ready' | 'stopping'

/** Far above the usual duration. */
const TIMEOUT_MS = 10_000

export class ServiceManager {
  readonly #socket: string | undefined

  /** Removes the socket from the environment, so that child processes cannot use it. */
  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#socket = env.NOTIFY_SOCKET || undefined
    delete env.NOTIFY_SOCKET
  }

  /**
   * Uses systemd's program, since Node has no Unix datagram sockets; old versions have no `--stopping`.
   *
   * @returns the problem; null if sent, or if the unit does not request notifications. Never rejects
   */
  notify(state: ServiceState): Promise<string | null> {
    if (this.#socket === undefined) return Promise.resolve(null)
    const env = { ...process.env, NOTIFY_SOCKET: this.#socket }
    return new Promise((resolve) => {
      execFile('systemd-notify', [`${state.toUpperCase()}=1`], { env, timeout: TIMEOUT_MS }, (error) =>
        resolve(error === null ? null : error.message),
      )
    })
  }
}
