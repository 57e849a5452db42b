/** Finds third-party plugins: the file of a path or an installed package, and the manifests of those that a configuration file or a command line option names. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { foldersFrom } from '#shared'
import { importPlugin, type PluginSection } from '../../../kernel/config/plugin-source.ts'
import type { Plugin, PluginManifest } from '../../../kernel/plugin/define-plugin.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { catalog } from '../../catalog.ts'
import { parseSource } from './config-source.ts'
import { toSection } from './draft.ts'

/**
 * Resolves `$path` and `$package` to an absolute file path; null for a plugin of the catalog.
 *
 * @param baseDir base of relative paths and of the package search
 * @throws Error whose message completes a sentence that begins with the section's path
 */
export function findPluginFile(section: PluginSection, baseDir: string): string | null {
  const { $path: path, $package: name } = section
  if (path === undefined && name === undefined) return null
  if (path !== undefined && name !== undefined)
    throw new Error('must have one of $path and $package, not both')
  if (typeof (path ?? name) !== 'string') throw new Error('must have text in $path or $package')
  const file = path === undefined ? findPackageEntry(String(name), baseDir) : toPath(String(path), baseDir)
  if (file === null)
    throw new Error(`needs the package ${name}, which is not installed; run npm install ${name}`)
  if (!existsSync(file)) throw new Error(`needs ${file}, which does not exist`)
  return file
}

function toPath(path: string, baseDir: string): string {
  return path.startsWith('file:') ? fileURLToPath(path) : resolve(baseDir, path)
}

/**
 * Entry module of a package, searched from the operator's folder; `import()` would search from this file.
 */
function findPackageEntry(name: string, baseDir: string): string | null {
  for (const folder of foldersFrom(resolve(baseDir))) {
    const root = join(folder, 'node_modules', name)
    const manifestPath = join(root, 'package.json')
    if (!existsSync(manifestPath)) continue
    const manifest = JSON.parse(readFileSync(manifestPath, 'utf8')) as Record<string, unknown>
    return join(root, entryOf(manifest))
  }
  return null
}

function entryOf(manifest: Record<string, unknown>): string {
  const { exports, main } = manifest
  const root = isObject(exports) && '.' in exports ? exports['.'] : exports
  return pickCondition(root) ?? (typeof main === 'string' ? main : 'index.js')
}

function pickCondition(target: unknown): string | null {
  if (typeof target === 'string') return target
  if (!isObject(target)) return null
  for (const condition of ['node', 'import', 'default']) {
    const found = pickCondition(target[condition])
    if (found !== null) return found
  }
  return null
}

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
