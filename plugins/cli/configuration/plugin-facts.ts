/** What the loader needs of a plugin, the lookup of plugins, and which of them are enabled because others require them. */
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'
import type { Plugin, PluginManifest } from '../../../kernel/plugin/define-plugin.ts'

/** The manifest of a plugin and its own checks. */
export type PluginFacts = Pick<PluginManifest, 'name' | 'config' | 'uses' | 'provides' | 'policies'> &
  Pick<Plugin, 'check' | 'enables'>

export function factsOf(plugin: Plugin): PluginFacts {
  return { ...plugin.manifest, check: plugin.check?.bind(plugin), enables: plugin.enables?.bind(plugin) }
}

/** Lookup of plugins by the loader. */
export interface PluginSchemas {
  /** Names of the catalog. */
  readonly names: readonly string[]
  /** Plugin to enable for a service that no enabled plugin provides, by service name. Default: none. */
  readonly defaultProviders?: Readonly<Record<string, string>>
  /** Prefixes of the paths of routes, by plugin. Default: none. */
  readonly routePrefixes?: Readonly<Record<string, readonly string[]>>
  /** @throws if the plugin cannot be imported */
  find(name: string, section: PluginSection): Promise<PluginFacts>
}

interface RequiredPluginsInput {
  /** Plugins that are enabled so far, by name. */
  readonly enabled: ReadonlyMap<string, PluginFacts>
  /** Plugins that the configuration or the command line disables. */
  readonly disabled: ReadonlySet<string>
  /** Names of the catalog; third-party plugins are never enabled this way. */
  readonly names: readonly string[]
  readonly defaultProviders?: Readonly<Record<string, string>>
}

/**
 * Plugins to enable for a loaded one: default providers of services that it uses and no enabled plugin provides, then those
 * that its section requires.
 *
 * @param section its valid members; null if there is no valid section, which then requires nothing
 */
export function requiredPlugins(
  facts: PluginFacts,
  section: PluginSection | null,
  { enabled, disabled, names, defaultProviders = {} }: RequiredPluginsInput,
): string[] {
  const isProvided = (service: string) =>
    [...enabled.values()].some(({ provides = [] }) => provides.some(({ name }) => name === service))
  const providers = (facts.uses ?? [])
    .filter(({ name }) => Object.hasOwn(defaultProviders, name) && !isProvided(name))
    .map(({ name }) => defaultProviders[name])
  const required = (section && facts.enables?.(section, (name) => enabled.has(name))) ?? []
  const isNew = (name: string) => names.includes(name) && !enabled.has(name) && !disabled.has(name)
  return [...new Set([...providers, ...required])].filter(isNew)
}
