/** Manifests of third-party plugins that a configuration file or `--plugin` names. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { importPlugin, type PluginSection } from '../../kernel/config/plugin-source.ts'
import type { Plugin, PluginManifest } from '../../kernel/plugin/define-plugin.ts'
import { catalog } from '../catalog.ts'
import { parseSource } from './configuration/config-source.ts'
import { toSection } from './configuration/draft.ts'
import { findPluginFile } from './configuration/find-plugin-file.ts'

/** Omits plugins that cannot be found or imported. */
export async function findForeignManifests(
  file: string | undefined,
  fromOptions: readonly string[],
): Promise<PluginManifest[]> {
  const known = Object.keys(catalog)
  const optionPlugins = fromOptions.map((name) => importManifest(toSection(name, known), process.cwd()))
  const found = await Promise.all([...optionPlugins, ...(file === undefined ? [] : fromFile(file))])
  return found.filter((manifest) => manifest !== null)
}

function fromFile(file: string): Promise<PluginManifest | null>[] {
  try {
    const { value } = parseSource(readFileSync(file, 'utf8'), file)
    const { plugins } = value as { plugins?: Record<string, PluginSection | null | false> }
    const sections = Object.values(plugins ?? {}).filter((section) => typeof section === 'object')
    return sections.map((section) => importManifest(section ?? {}, dirname(resolve(file))))
  } catch {
    return []
  }
}

async function importManifest(section: PluginSection, baseDir: string): Promise<PluginManifest | null> {
  try {
    const path = findPluginFile(section, baseDir)
    if (path === null) return null
    return (await importPlugin<Plugin>('', { $path: path }, catalog)).manifest
  } catch {
    return null
  }
}
