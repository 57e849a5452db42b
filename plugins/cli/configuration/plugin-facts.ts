/** What the loader needs of a plugin, and the lookup of plugins. */
import type { KernelConfig, SettingProblem, TSchema } from '#kernel'
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'
import type { Plugin } from '../../../kernel/plugin/define-plugin.ts'

/** The manifest of a plugin and its own checks. */
export interface PluginFacts {
  readonly name: string
  readonly config: TSchema
  /** Services that it requires. */
  readonly uses?: readonly { readonly name: string }[]
  readonly provides?: readonly { readonly name: string }[]
  /** Policies that it registers. */
  readonly policies?: readonly string[]
  /** Mistakes in a section that fits the schema. */
  readonly check?: (section: PluginSection, kernel: KernelConfig) => Iterable<SettingProblem>
  /** Plugins to enable with it, by its section. */
  readonly enables?: (section: PluginSection, isEnabled: (plugin: string) => boolean) => Iterable<string>
}

export function factsOf(plugin: Plugin): PluginFacts {
  return { ...plugin.manifest, check: plugin.check?.bind(plugin), enables: plugin.enables?.bind(plugin) }
}

/** Lookup of plugins by the loader. */
export interface PluginSchemas {
  /** Names of the catalog. */
  readonly names: readonly string[]
  /** Plugin to enable for a service that no enabled plugin provides, by service name. Default: none. */
  readonly defaultProviders?: Readonly<Record<string, string>>
  /** @throws if the plugin cannot be imported */
  find(name: string, section: PluginSection): Promise<PluginFacts>
}
