/** What of a configuration that was read again can be taken on, and what waits for a restart. Plain data in and out. */
import { isDeepStrictEqual } from 'node:util'
import { deepFreeze } from '../../../kernel/config/deep-freeze.ts'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { type ConfigChange, KERNEL_RELOADS } from '../../../kernel/config/reload.ts'

type Section = Record<string, unknown>

/** @param reloads what each enabled plugin's manifest says */
export function changeConfig(
  running: LoadedConfig,
  wanted: LoadedConfig,
  reloads: ReadonlyMap<string, readonly string[]>,
): ConfigChange {
  const kernel = structuredClone(running.kernel) as unknown as Section
  const plugins: Record<string, Section> = structuredClone(running.plugins) as Record<string, Section>
  const applied = takeOver(kernel, wanted.kernel as unknown as Section, KERNEL_RELOADS).map(
    (path) => `kernel.${path}`,
  )
  const changed: string[] = []
  for (const [name, section] of Object.entries(plugins)) {
    const paths = takeOver(section, wanted.plugins[name] ?? section, reloads.get(name) ?? [])
    if (paths.length > 0) changed.push(name)
    applied.push(...paths.map((path) => `plugins.${name}.${path}`))
  }
  const needsRestart = [
    ...differences(kernel, wanted.kernel as unknown as Section, 'kernel'),
    ...differences(plugins, wanted.plugins as Record<string, Section>, 'plugins', 2),
  ]
  const { secretPaths, notices } = wanted
  const next = deepFreeze({ ...running, kernel, plugins, secretPaths, notices }) as unknown as LoadedConfig
  return { next, applied, needsRestart, plugins: changed }
}

/** Copies what differs at these paths, where both have what holds it. @returns the paths */
function takeOver(into: Section, from: Section, paths: readonly string[]): string[] {
  return paths.filter((path) => {
    const keys = path.split('.')
    const value = valueAt(from, keys)
    if (isDeepStrictEqual(valueAt(into, keys), value)) return false
    const last = keys[keys.length - 1]
    const above = keys.slice(0, -1)
    const holder = valueAt(into, above)
    if (!isSection(holder) || !isSection(valueAt(from, above))) return false
    if (value === undefined) delete holder[last]
    else holder[last] = structuredClone(value)
    return true
  })
}

function valueAt(section: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((held, key) => (isSection(held) ? held[key] : undefined), section)
}

/** @param levels down to which differences are told apart */
function differences(before: Section, after: Section, path: string, levels = 1): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].sort().flatMap((key) => {
    const [a, b] = [before[key], after[key]]
    if (isDeepStrictEqual(a, b)) return []
    const own = `${path}.${key}`
    return levels > 1 && isSection(a) && isSection(b) ? differences(a, b, own, levels - 1) : [own]
  })
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
