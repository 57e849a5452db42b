/** The configuration that a gateway starts with. */
import type { KernelConfig } from './kernel-config.ts'
import type { PluginSection } from './plugin-source.ts'

/** Complete, frozen and plain data, so that it can be sent to other threads. */
export interface LoadedConfig {
  readonly kernel: KernelConfig
  /** Enabled plugins with defaults filled in. A third-party plugin has its file in `$path`. */
  readonly plugins: Readonly<Record<string, PluginSection>>
  /** Plugins enabled because another plugin requires them, each with that plugin. */
  readonly requiredBy: Readonly<Record<string, string>>
  /** Absolute path of the file; null without one. */
  readonly file: string | null
  /** Paths, as JSON arrays, of values that came from the environment or from a secret flag; never shown. */
  readonly secretPaths: readonly string[]
  /** Hints for the operator. */
  readonly notices: readonly string[]
}
