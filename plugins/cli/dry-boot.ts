/** Everything of a boot that opens nothing: plugins register, routes and hooks are compiled, the policy is looked up. */
import { createCounters } from '../../kernel/balance/counters.ts'
import { GatewayThread } from '../../kernel/boot.ts'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { loadPlugins } from '../../kernel/load-plugins.ts'
import { createLogger } from '../../kernel/observe/log.ts'
import { ControlLink } from '../../kernel/threads/control-link.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { catalog } from '../catalog.ts'

/**
 * Finds what only a boot finds: a policy nobody offers, routes that need keys while no plugin checks any, a section
 * that a plugin refuses.
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
