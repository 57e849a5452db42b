/**
 * Imports the enabled plugins and sorts them: the provider of a service comes before its users, and dependencies before their
 * dependents. A missing dependency, two providers of one service, or a cycle stops the boot and names the plugins.
 */
import type { LoadedConfig } from './config/loaded-config.ts'
import { importPlugin, type ModuleCatalog } from './config/plugin-source.ts'
import type { Token } from './contracts/token.ts'
import { BootError } from './errors/boot-error.ts'
import type { Plugin, PluginManifest } from './plugin/define-plugin.ts'

/** Plugins by name, each imported only if it is enabled. */
export type PluginCatalog = ModuleCatalog<Plugin>

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

/** A service that an enabled plugin requires and that no enabled plugin provides. */
export interface MissingService {
  readonly plugin: string
  readonly service: string
}

/** Stable: plugins without a dependency keep their order. @throws BootError */
export function sortPlugins(plugins: readonly Plugin[]): Plugin[] {
  const byName = new Map(plugins.map((plugin) => [plugin.manifest.name, plugin]))
  const providers = providersOf(plugins)
  const sorted: Plugin[] = []
  const done = new Set<string>()
  const visit = (plugin: Plugin, chain: readonly string[]): void => {
    const { name } = plugin.manifest
    if (done.has(name)) return
    if (chain.includes(name)) {
      throw new BootError(`plugins depend on each other in a cycle: ${[...chain, name].join(' → ')}`)
    }
    const path = [...chain, name]
    for (const provider of providersFor(plugin.manifest, providers)) visit(provider, path)
    for (const needed of dependenciesOf(plugin.manifest, byName, path)) visit(needed, path)
    done.add(name)
    sorted.push(plugin)
  }
  for (const plugin of plugins) visit(plugin, [])
  return sorted
}

/** Every required service without a provider, once per plugin that uses it. @throws BootError for two providers */
export function missingServices(plugins: readonly Plugin[]): MissingService[] {
  const providers = providersOf(plugins)
  return plugins.flatMap(({ manifest }) =>
    (manifest.uses ?? [])
      .filter(({ name }) => !providers.has(name))
      .map(({ name }) => ({ plugin: manifest.name, service: name })),
  )
}

function providesService({ manifest }: Plugin, service: string): boolean {
  return manifest.provides?.some(({ name }) => name === service) === true
}

function providersOf(plugins: readonly Plugin[]): Map<string, Plugin> {
  const providers = new Map<string, Plugin>()
  for (const plugin of plugins) {
    for (const { name } of plugin.manifest.provides ?? []) {
      const other = providers.get(name)
      if (other !== undefined && other !== plugin) {
        throw new BootError(
          `plugins ${other.manifest.name} and ${plugin.manifest.name} both provide the service ${name}; enable one of them`,
        )
      }
      providers.set(name, plugin)
    }
  }
  return providers
}

function providersFor(manifest: PluginManifest, providers: ReadonlyMap<string, Plugin>): Plugin[] {
  const provider = ({ name }: Token<unknown>): Plugin[] => {
    const found = providers.get(name)
    // A plugin may use its own services.
    return found === undefined || found.manifest === manifest ? [] : [found]
  }
  return [...(manifest.uses ?? []), ...(manifest.usesOptionally ?? [])].flatMap(provider)
}

function dependenciesOf(
  manifest: PluginManifest,
  byName: ReadonlyMap<string, Plugin>,
  chain: readonly string[],
): Plugin[] {
  const needs: Plugin[] = []
  for (const name of manifest.dependencies ?? []) {
    const plugin = byName.get(name)
    if (plugin === undefined) {
      throw new BootError(
        `plugin ${manifest.name} needs plugin ${name}, which is not enabled (${[...chain, name].join(' → ')}); ` +
          `add "${name}: {}" under plugins`,
      )
    }
    needs.push(plugin)
  }
  for (const name of manifest.optionalDependencies ?? []) {
    const plugin = byName.get(name)
    if (plugin !== undefined) needs.push(plugin)
  }
  return needs
}
