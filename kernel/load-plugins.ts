/** Imports the enabled plugins and sorts them by their dependencies. */
import type { LoadedConfig } from './config/loaded-config.ts'
import { importPlugin } from './config/plugin-source.ts'
import { BootError } from './errors/boot-error.ts'
import type { Plugin } from './plugin/define-plugin.ts'
import { missingServices, providesService, sortPlugins } from './plugin/graph.ts'

/** Plugins by name, each imported only if it is enabled. */
export type PluginCatalog = Readonly<Record<string, () => Promise<{ default: Plugin }>>>

/** @throws BootError, ConfigError */
export async function loadPlugins(config: LoadedConfig, catalog: PluginCatalog): Promise<Plugin[]> {
  const names = Object.keys(config.plugins)
  const plugins = await Promise.all(
    names.map(async (name) => {
      const plugin = await importPlugin(name, config.plugins[name], catalog)
      if (plugin.manifest.name !== name) {
        throw new BootError(
          `the plugin enabled as ${name} is named ${plugin.manifest.name} in its manifest; use that name under plugins`,
        )
      }
      return plugin
    }),
  )
  await assertServices(plugins, config, catalog)
  return sortPlugins(plugins)
}

/** @throws BootError for a service without a provider, naming the plugins of the catalog that provide it */
async function assertServices(
  plugins: readonly Plugin[],
  config: LoadedConfig,
  catalog: PluginCatalog,
): Promise<void> {
  const [missing] = missingServices(plugins)
  if (missing === undefined) return
  const { plugin, service } = missing
  const others = Object.keys(catalog).filter((name) => config.plugins[name] === undefined)
  const modules = await Promise.all(others.map((name) => catalog[name]()))
  const providers = modules
    .filter((module) => providesService(module.default, service))
    .map((module) => module.default.manifest.name)
  const advice =
    providers.length === 0
      ? `; no plugin of the catalog does either`
      : `; enable plugin ${providers.join(' or ')}, which provides it`
  throw new BootError(
    `plugin ${plugin} uses the service ${service}, which no enabled plugin provides${advice}`,
  )
}
