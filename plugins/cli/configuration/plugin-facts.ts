/** What the loader reads in manifests, and how it finds them. */
import type { KernelConfig, SettingProblem, TSchema } from '#kernel'
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'
import type { Plugin } from '../../../kernel/plugin/define-plugin.ts'

/** What the loader learns of a plugin: what its manifest says, and its own check. */
export interface PluginFacts {
  readonly name: string
  readonly config: TSchema
  /** Services that it cannot do without. */
  readonly uses?: readonly { readonly name: string }[]
  readonly provides?: readonly { readonly name: string }[]
  /** Policies that it registers. */
  readonly policies?: readonly string[]
  /** Mistakes in a section that fits the schema. */
  readonly check?: (section: PluginSection, kernel: KernelConfig) => Iterable<SettingProblem>
  /** Plugins to enable with it, by its section. */
  readonly enables?: (section: PluginSection, isEnabled: (plugin: string) => boolean) => Iterable<string>
}

/** Of a plugin that was imported. */
export function factsOf(plugin: Plugin): PluginFacts {
  return { ...plugin.manifest, check: plugin.check?.bind(plugin), enables: plugin.enables?.bind(plugin) }
}

/** How the loader learns what a plugin may be told. */
export interface PluginSchemas {
  /** Plugins that exist without a package or a file, for suggestions. */
  readonly names: readonly string[]
  /** Plugin to enable for a service that no enabled plugin provides, by service name. Default: none. */
  readonly defaultProviders?: Readonly<Record<string, string>>
  /** What a plugin calls itself, and what its section may say. @throws when the plugin cannot be imported */
  find(name: string, section: PluginSection): Promise<PluginFacts>
}
