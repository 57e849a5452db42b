/** Boots without opening anything: plugins register, routes and hooks are compiled, policies are resolved. */
import { createCounters } from '../../kernel/balance/counters.ts'
import { GatewayThread } from '../../kernel/boot.ts'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import type { Logger } from '../../kernel/contracts/log.ts'
import { checkAuthorities } from '../../kernel/http/tls-files.ts'
import { loadPlugins } from '../../kernel/load-plugins.ts'
import { ControlLink } from '../../kernel/threads/control-link.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { catalog } from '../catalog.ts'

/** Not a logger of the thread, which keeps those for its whole life. */
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => SILENT }

/** Of the last boot, by name. */
const blocks = new Map<string, SharedArrayBuffer>()

/**
 * Gives every boot the same blocks. The garbage collector does not count shared memory, so that it would let the blocks of
 * hundreds of boots accumulate, 74 MB each.
 */
class ReusedMemory extends SharedMemory {
  override block(name: string, bytes: number): SharedArrayBuffer {
    const known = blocks.get(name)
    if (known?.byteLength === bytes) return known
    const block = new SharedArrayBuffer(bytes)
    blocks.set(name, block)
    return block
  }
}

/** Counters of the last boot, which used none of them, by number of workers. */
const counters = new Map<number, SharedArrayBuffer>()

function countersOf(maxWorkers: number): SharedArrayBuffer {
  const known = counters.get(maxWorkers) ?? createCounters(maxWorkers, 0)
  counters.clear()
  counters.set(maxWorkers, known)
  return known
}

/**
 * Finds errors that only a boot finds: an unknown policy, routes that need keys without a plugin that checks them, a
 * section that a plugin rejects.
 *
 * @throws BootError as `serve` would
 */
export async function dryBoot(loaded: LoadedConfig): Promise<void> {
  const log = SILENT
  const { caFile, ...kernel } = loaded.kernel
  // Not trusted: a running gateway checks configurations, too.
  if (caFile !== undefined) checkAuthorities(caFile)
  // The output of access lines is never closed.
  const config = { ...loaded, kernel: { ...kernel, log: { ...kernel.log, access: false } } }
  const plugins = await loadPlugins(config, catalog)
  const link = new ControlLink({ log, isData: true })
  const thread = new GatewayThread(
    {
      config,
      link,
      counters: countersOf(config.kernel.limits.maxWorkers),
      shared: new ReusedMemory(),
      log,
    },
    plugins,
  )
  await thread.stop()
}
