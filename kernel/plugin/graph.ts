/** Order of plugins: what one depends on comes before it. A gap or a cycle stops the boot and prints the chain. */
import type { Plugin, PluginManifest } from './define-plugin.ts'
import { BootError } from './plugin-errors.ts'

/** Stable: plugins that do not depend on each other keep the order they came in. */
export function sortByDependency(plugins: readonly Plugin[]): Plugin[] {
  const byName = new Map(plugins.map((plugin) => [plugin.manifest.name, plugin]))
  const sorted: Plugin[] = []
  const done = new Set<string>()
  const visit = (plugin: Plugin, chain: readonly string[]): void => {
    const { name } = plugin.manifest
    if (done.has(name)) return
    if (chain.includes(name)) {
      throw new BootError(`plugins depend on each other in a circle: ${[...chain, name].join(' → ')}`)
    }
    for (const needed of needsOf(plugin.manifest, byName, [...chain, name])) visit(needed, [...chain, name])
    done.add(name)
    sorted.push(plugin)
  }
  for (const plugin of plugins) visit(plugin, [])
  return sorted
}

function needsOf(
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
