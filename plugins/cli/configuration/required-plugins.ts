/** Plugins that a configuration enables without naming them, because plugins that it names need them. */
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'
import type { PluginFacts } from './plugin-facts.ts'

export interface RequiredPluginsInput {
  /** Plugins that are enabled so far, by name. */
  readonly enabled: ReadonlyMap<string, PluginFacts>
  /** Plugins that the configuration or the command line disables. */
  readonly disabled: ReadonlySet<string>
  /** Names of the catalog; others are not enabled for anybody. */
  readonly names: readonly string[]
  readonly defaultProviders?: Readonly<Record<string, string>>
}

/**
 * Plugins to enable for one that was just loaded: the default providers of services that it uses and no enabled plugin provides, then
 * those that it asks for by its section.
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
  const asked = facts.enables?.(section, (name) => enabled.has(name)) ?? []
  const isWanted = (name: string) => names.includes(name) && !enabled.has(name) && !disabled.has(name)
  return [...new Set([...providers, ...asked])].filter(isWanted)
}
