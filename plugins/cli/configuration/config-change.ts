/** Computes which changes of a reloaded configuration apply now, and which need a restart. */
import { isDeepStrictEqual } from 'node:util'
import { deepFreeze } from '../../../kernel/config/deep-freeze.ts'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { type ConfigChange, KERNEL_RELOADS } from '../../../kernel/config/reload.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'

type Section = Record<string, unknown>

/** @param reloads reloadable settings of each enabled plugin */
export function changeConfig(
  running: LoadedConfig,
  loaded: LoadedConfig,
  reloads: ReadonlyMap<string, readonly string[]>,
): ConfigChange {
  const kernel = structuredClone(running.kernel) as unknown as Section
  const plugins: Record<string, Section> = structuredClone(running.plugins) as Record<string, Section>
  const applied = copyChanged(kernel, loaded.kernel as unknown as Section, KERNEL_RELOADS).map(
    (path) => `kernel.${path}`,
  )
  const changed: string[] = []
  for (const [name, section] of Object.entries(plugins)) {
    const paths = copyChanged(section, loaded.plugins[name] ?? section, reloads.get(name) ?? [])
    if (paths.length > 0) changed.push(name)
    applied.push(...paths.map((path) => `plugins.${name}.${path}`))
  }
  const needsRestart = [
    ...differences(kernel, loaded.kernel as unknown as Section, 'kernel'),
    ...differences(plugins, loaded.plugins as Record<string, Section>, 'plugins', 2),
  ]
  const { secretPaths, sources, notices } = loaded
  const next = deepFreeze({
    ...running,
    kernel,
    plugins,
    secretPaths,
    sources,
    notices,
  }) as unknown as LoadedConfig
  return { next, applied, needsRestart, plugins: changed }
}

/** Copies differing values at these paths if both have the parent object. @returns the paths */
function copyChanged(into: Section, from: Section, paths: readonly string[]): string[] {
  return paths.filter((path) => {
    const keys = path.split('.')
    const value = valueAt(from, keys)
    if (isDeepStrictEqual(valueAt(into, keys), value)) return false
    const last = keys[keys.length - 1]
    const parent = keys.slice(0, -1)
    const holder = valueAt(into, parent)
    if (!isObject(holder) || !isObject(valueAt(from, parent))) return false
    if (value === undefined) delete holder[last]
    else holder[last] = structuredClone(value)
    return true
  })
}

function valueAt(section: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), section)
}

/** @param levels depth to which differences are reported separately */
function differences(before: Section, after: Section, path: string, levels = 1): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].sort().flatMap((key) => {
    const [a, b] = [before[key], after[key]]
    if (isDeepStrictEqual(a, b)) return []
    const own = `${path}.${key}`
    return levels > 1 && isObject(a) && isObject(b) ? differences(a, b, own, levels - 1) : [own]
  })
}
