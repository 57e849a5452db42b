/** Schemas of the plugins; imports only plugins that are looked up. */
import { importPlugin } from '../../kernel/config/plugin-source.ts'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { catalog, defaultProviders } from '../catalog.ts'
import { factsOf, type PluginSchemas } from './configuration/plugin-facts.ts'

export const pluginSchemas: PluginSchemas = {
  names: Object.keys(catalog),
  defaultProviders,
  async find(name, section) {
    return factsOf(await importPlugin<Plugin>(name, section, catalog))
  },
}
