/** Runs the kernel with a configuration and the plugins of this installation; handles signals and systemd. */

import { execFile } from 'node:child_process'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { moduleFile } from '../../kernel/installation.ts'
import { type GatewayControls, type ServeInfo, serve } from '../../kernel/serve.ts'
import { catalog } from '../catalog.ts'
import { FileSource, type LoadConfig } from './configuration/file-source.ts'

/** Time for what is left to end, such as output that is still written. */
const EXIT_MS = 1_000

interface RunOptions {
  /** False opens no API listener. Default true. */
  readonly apiListener?: boolean
  /** Loads and checks the configuration again, or a text instead of its file. */
  readonly reload?: LoadConfig
  readonly onReady: (info: ServeInfo) => void
}

/** Resolves when the gateway has shut down. */
export async function runGateway(config: LoadedConfig, options: RunOptions): Promise<void> {
  // Entry file of data threads, without a command line.
  const entry = moduleFile('plugins/serve').href
  const { reload } = options
  const manager = new ServiceManager()
  let controls: GatewayControls | null = null
  const notify = async (state: ServiceState) => {
    const problem = await manager.notify(state)
    if (problem !== null) controls?.log.error({ problem, state }, 'systemd notification failed')
  }
  const watch = (given: GatewayControls) => {
    controls = given
    const demandShutdown = (settleMs: number) => {
      void notify('stopping')
      given.demandShutdown(settleMs)
    }
    return watchSignals({ ...given, demandShutdown })
  }
  const onReady = (info: ServeInfo) => {
    void notify('ready')
    options.onReady(info)
  }
  const { apiListener } = options
  const source = reload && new FileSource(config.file, reload)
  await serve({ catalog, entry, config, apiListener, onReady, source, watch })
  // Timers and connections that a plugin has left must not keep the process.
  setTimeout(() => process.exit(), EXIT_MS).unref()
}

/**
 * SIGHUP reloads. SIGTERM and SIGQUIT drain; SIGINT drains without the settle time for balancers; a second signal closes
 * open requests. SIGUSR1 and SIGUSR2, which would open the debugger or end the process, are ignored.
 *
 * @returns a function that removes the handlers
 */
function watchSignals({ settleMs, log, demandShutdown, reload }: GatewayControls): () => void {
  const drain = () => demandShutdown(settleMs)
  const interrupt = () => demandShutdown(0)
  const ignore = (name: string) => log.info({ signal: name }, 'signal ignored')
  const hangUp = (name: string) => {
    log.info({ signal: name }, 'configuration reload requested')
    reload()
  }
  const handlers: readonly (readonly [NodeJS.Signals, (name: string) => void])[] = [
    ['SIGTERM', drain],
    ['SIGQUIT', drain],
    ['SIGINT', interrupt],
    ['SIGHUP', hangUp],
    ['SIGUSR1', ignore],
    ['SIGUSR2', ignore],
  ]
  for (const [name, handler] of handlers) process.on(name, handler)
  return () => {
    for (const [name, handler] of handlers) process.off(name, handler)
  }
}

type ServiceState = 'ready' | 'stopping'

/** Far above the usual duration. */
const TIMEOUT_MS = 10_000

/** Reports the state of the service to systemd if the unit is of `Type=notify`. @source sd_notify(3) */
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
