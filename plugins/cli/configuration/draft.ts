/** The configuration before it is checked: the file, the enabled plugins, and single settings. */
import { resolve } from 'node:path'
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { describeValue, unknownKeyText } from './check-section.ts'
import type { ProblemList } from './problem-list.ts'
import type { Setting } from './settings.ts'

/** Enabled, with what they require, if no file selects plugins. */
export const DEFAULT_PLUGINS: readonly string[] = Object.freeze([
  'chat',
  'health',
  'metrics',
  'openapi',
  'pairs',
  'reload',
  'workers',
])

/** Plugins that the command line enables and disables. */
export interface PluginOverrides {
  /** To enable: a name of the catalog, a path that begins with a dot or slash, or a package. */
  readonly plugins?: readonly string[]
  /** To disable; has precedence over everything else. */
  readonly without?: readonly string[]
}

/** Checks that a file has only the two sections. */
export function openDraft(value: unknown, problems: ProblemList): Record<string, unknown> {
  if (value === null) return {}
  if (!isObject(value)) {
    problems.add({ path: [], text: 'the file must hold kernel and plugins', got: describeValue(value) })
    return {}
  }
  for (const key of Object.keys(value)) {
    if (key !== 'kernel' && key !== 'plugins')
      problems.add({ path: [key], text: unknownKeyText(key, ['kernel', 'plugins'], []) })
  }
  return value
}

/** Sections of the plugins of the file, or of the default ones, and of those that flags enable. */
export function choosePlugins(
  draft: Record<string, unknown>,
  overrides: PluginOverrides,
  known: readonly string[],
  problems: ProblemList,
): Record<string, unknown> {
  const written = draft.plugins ?? Object.fromEntries(DEFAULT_PLUGINS.map((name) => [name, {}]))
  const chosen: Record<string, unknown> = {}
  if (isObject(written)) {
    for (const [name, section] of Object.entries(written)) {
      if (section === false) continue
      chosen[name] = section ?? {}
      if (isObject(chosen[name])) continue
      const path = ['plugins', name]
      problems.add({ path, text: 'must be an object, null or false', got: describeValue(section) })
      delete chosen[name]
    }
  } else {
    problems.add({ path: ['plugins'], text: 'must be an object', got: describeValue(written) })
  }
  for (const name of overrides.plugins ?? []) chosen[name] ??= toSection(name, known)
  return chosen
}

export function disabledIn({ plugins }: Record<string, unknown>): string[] {
  if (!isObject(plugins)) return []
  return Object.keys(plugins).filter((name) => plugins[name] === false)
}

/** Section for a value of `--plugin`: a name of the catalog, a path or a package. */
export function toSection(plugin: string, known: readonly string[]): PluginSection {
  if (known.includes(plugin)) return {}
  const isPath = /^(\.{0,2}\/|file:)|\.[cm]?[jt]s$/.test(plugin)
  if (!isPath) return { $package: plugin }
  // Relative to the working directory, not to the configuration file.
  return { $path: plugin.startsWith('file:') ? plugin : resolve(plugin) }
}

export function applySetting(sections: Record<string, unknown>, setting: Setting): void {
  let target = sections
  for (const key of setting.path.slice(0, -1)) {
    const next = isObject(target[key]) ? { ...target[key] } : {}
    target[key] = next
    target = next
  }
  target[setting.path[setting.path.length - 1]] = setting.value
}
