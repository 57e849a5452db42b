/** Boots without opening anything: plugins register, routes and hooks are compiled, policies are resolved. */
import { createCounters } from '../../kernel/balance/counters.ts'
import { GatewayThread } from '../../kernel/boot.ts'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { loadPlugins } from '../../kernel/load-plugins.ts'
import { createLogger } from '../../kernel/observe/log.ts'
import { ControlLink } from '../../kernel/threads/control-link.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { catalog } from '../catalog.ts'

/**
 * Finds errors that only a boot finds: an unknown policy, routes that need keys without a plugin that checks them, a
 * section that a plugin rejects.
 *
 * @throws BootError as `serve` would
 */
export async function dryBoot(config: LoadedConfig): Promise<void> {
  const log = createLogger({ level: 'silent', thread: 0 })
  const plugins = await loadPlugins(config, catalog)
  const link = new ControlLink({ log, isData: true })
  const counters = createCounters(config.kernel.limits.maxWorkers, 0)
  const thread = new GatewayThread({ config, link, counters, shared: new SharedMemory(), log }, plugins)
  await thread.stop()
}
