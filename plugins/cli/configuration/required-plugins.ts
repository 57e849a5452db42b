/** Plugins that are enabled because other plugins require them. */
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'
import type { PluginFacts } from './plugin-facts.ts'

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
 */
export function requiredPlugins(
  facts: PluginFacts,
  section: PluginSection,
  { enabled, disabled, names, defaultProviders = {} }: RequiredPluginsInput,
): string[] {
  const isProvided = (service: string) =>
    [...enabled.values()].some(({ provides = [] }) => provides.some(({ name }) => name === service))
  const providers = (facts.uses ?? [])
    .filter(({ name }) => Object.hasOwn(defaultProviders, name) && !isProvided(name))
    .map(({ name }) => defaultProviders[name])
  const required = facts.enables?.(section, (name) => enabled.has(name)) ?? []
  const isNew = (name: string) => names.includes(name) && !enabled.has(name) && !disabled.has(name)
  return [...new Set([...providers, ...required])].filter(isNew)
}
