/** What a gateway is started with. How it was put together, from a file or otherwise, is nothing to the kernel. */
import type { KernelConfig } from './kernel-config.ts'
import type { PluginSection } from './plugin-source.ts'

/** The whole configuration: complete, frozen, and plain data that crosses to other threads. */
export interface LoadedConfig {
  readonly kernel: KernelConfig
  /** Enabled plugins only, defaults filled in. A third party's plugin has its file in `$path`. */
  readonly plugins: Readonly<Record<string, PluginSection>>
  /** Plugins that the configuration does not name, each with the plugin that needs it. */
  readonly requiredBy: Readonly<Record<string, string>>
  /** Absolute path of the file; null when there was none. */
  readonly file: string | null
  /** Paths, as JSON arrays, of values that came from the environment or from a secret flag; never shown. */
  readonly secretPaths: readonly string[]
  /** What the operator should know although nothing is wrong. */
  readonly notices: readonly string[]
}
