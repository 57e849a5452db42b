/** The effective configuration as a list of values, each with its source; secrets are masked. */
import type { ShownConfig, ShownValue, TSchema } from '#kernel'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { maskSecrets, toKey } from './mask.ts'
import type { Setting } from './settings.ts'

type Sources = LoadedConfig['sources']

/** Values of the sections that are not defaults, by `toKey` of their paths. @param draft content of the file */
export function sourcesOf(
  sections: Pick<LoadedConfig, 'kernel' | 'plugins'>,
  draft: unknown,
  settings: readonly Pick<Setting, 'path' | 'origin'>[],
): Sources {
  const sources: Record<string, ShownValue['source']> = {}
  for (const { path } of leavesOf(sections)) if (hasPath(draft, path)) sources[toKey(path)] = 'file'
  // Flags follow the environment and have precedence.
  for (const { path, origin } of settings)
    sources[toKey(path)] = origin.startsWith('--') ? 'flag' : 'environment'
  return sources
}

/** @param pluginSchemas as for `maskSecrets` */
export function showConfig(
  config: LoadedConfig,
  pluginSchemas: Readonly<Record<string, TSchema>>,
): ShownConfig {
  const values = leavesOf(maskSecrets(config, pluginSchemas)).map(({ path, value }) => ({
    path: path.join('.'),
    value,
    source: config.sources[toKey(path)] ?? 'default',
  }))
  return { file: config.file, values }
}

/** Lists and empty objects are values. */
function leavesOf(
  value: unknown,
  path: readonly string[] = [],
): { path: readonly string[]; value: unknown }[] {
  const members = isObject(value) ? Object.entries(value) : []
  if (members.length === 0) return [{ path, value }]
  return members.flatMap(([key, member]) => leavesOf(member, [...path, key]))
}

function hasPath(value: unknown, path: readonly string[]): boolean {
  let at = value
  for (const key of path) {
    // A reference, such as { $env: NAME }, stands for everything below.
    if (!isObject(at)) return false
    if (!Object.hasOwn(at, key)) return Object.keys(at).some((name) => name === '$env' || name === '$file')
    at = at[key]
  }
  return true
}
