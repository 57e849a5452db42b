/** Schemas of the plugins; imports only plugins that are looked up. */
import type { TSchema } from '#kernel'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { importPlugin } from '../../kernel/config/plugin-source.ts'
import type { PluginCatalog } from '../../kernel/load-plugins.ts'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { catalog, defaultProviders, routePrefixes } from '../catalog.ts'
import { factsOf, type PluginSchemas } from './configuration/plugin-facts.ts'

/** Schemas of the plugins of a catalog. */
export function schemasOfCatalog(plugins: PluginCatalog): PluginSchemas {
  return {
    names: Object.keys(plugins),
    defaultProviders,
    routePrefixes,
    find: async (name, section) => factsOf(await importPlugin<Plugin>(name, section, plugins)),
  }
}

export const pluginSchemas = schemasOfCatalog(catalog)

/** Schemas of the sections of the enabled plugins, by name. */
export async function schemasOf(
  { plugins }: Pick<LoadedConfig, 'plugins'>,
  { find }: PluginSchemas = pluginSchemas,
): Promise<Record<string, TSchema>> {
  const found = Object.entries(plugins).map(async ([name, section]) => [
    name,
    (await find(name, section)).config,
  ])
  return Object.fromEntries(await Promise.all(found))
}
