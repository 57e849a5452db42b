/**
 * Order of plugins: the provider of a service comes before its users, and dependencies before their dependents. A missing
 * dependency, two providers of one service, or a cycle stops the boot and names the plugins.
 */
import type { Token } from '../contracts/token.ts'
import { BootError } from '../errors/boot-error.ts'
import type { Plugin, PluginManifest } from './define-plugin.ts'

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

export function providesService({ manifest }: Plugin, service: string): boolean {
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
