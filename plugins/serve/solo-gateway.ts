/** A gateway inside a data thread, which has its own table of workers, metrics and counters. */
import { createCounters } from '../../kernel/balance/counters.ts'
import { GatewayThread } from '../../kernel/boot.ts'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import type { Logger } from '../../kernel/contracts/log.ts'
import { loadPlugins, type PluginCatalog } from '../../kernel/load-plugins.ts'
import { ControlLink } from '../../kernel/threads/control-link.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'

export interface SoloGateway {
  readonly port: number
  close(): Promise<void>
}

/** Listens on a free port once its workers are registered. @throws BootError */
export async function openSolo(
  config: LoadedConfig,
  catalog: PluginCatalog,
  log: Logger,
): Promise<SoloGateway> {
  const link = new ControlLink({ log, isData: true })
  const counters = createCounters(config.kernel.limits.maxWorkers, 0)
  const plugins = await loadPlugins(config, catalog)
  const thread = new GatewayThread({ config, link, counters, shared: new SharedMemory(), log }, plugins)
  await thread.start()
  await thread.ready()
  const port = await thread.listenOnceStarted(0)
  return {
    port,
    close: async () => {
      await thread.drain(0, 0)
      await thread.stop()
    },
  }
}
