/** Hands a configuration to the kernel, with this installation's plugins. */
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import type { ReadChange } from '../../kernel/config/reload.ts'
import { type GatewayControls, type ServeInfo, serve } from '../../kernel/serve.ts'
import { catalog } from '../catalog.ts'
import { changeConfig } from './configuration/config-change.ts'
import { watchSignals } from './process-signals.ts'
import { ServiceManager, type ServiceState } from './service-manager.ts'

export interface RunOptions {
  /** False opens no API listener. Default true. */
  readonly apiListener?: boolean
  /** Reads the configuration anew. */
  readonly reload?: () => Promise<LoadedConfig>
  readonly onReady: (info: ServeInfo) => void
}

/** Resolves when the gateway has shut down. */
export async function runGateway(config: LoadedConfig, options: RunOptions): Promise<void> {
  // Data threads begin in the entry file; this one reads no command line.
  const entry = new URL(import.meta.url.endsWith('.ts') ? '../serve.ts' : '../serve.js', import.meta.url).href
  const { reload } = options
  const manager = new ServiceManager()
  let controls: GatewayControls | null = null
  const tell = async (state: ServiceState) => {
    const problem = await manager.tell(state)
    if (problem !== null)
      controls?.log.error({ problem }, `systemd was not told that the gateway is ${state}`)
  }
  const watch = (given: GatewayControls) => {
    controls = given
    const demandShutdown = (settleMs: number) => {
      void tell('stopping')
      given.demandShutdown(settleMs)
    }
    return watchSignals({ ...given, demandShutdown })
  }
  const onReady = (info: ServeInfo) => {
    void tell('ready')
    options.onReady(info)
  }
  const readChange: ReadChange | undefined =
    reload && (async (running, reloads) => changeConfig(running, await reload(), reloads))
  await serve({ catalog, entry, config, ...options, onReady, reload: readChange, watch })
}
