/** Imports a plugin from the catalog or from a file (`$path`). */
import { pathToFileURL } from 'node:url'
import { isObject } from '../wire/is-object.ts'

/** Section of a plugin as loaded: its settings and, for a third-party plugin, `$path`. */
export type PluginSection = Readonly<Record<string, unknown>>

/** Import functions by plugin name. */
export type ModuleCatalog<T> = Readonly<Record<string, () => Promise<{ default: T }>>>

/** Keys of a section that locate the plugin and are not part of its settings. */
const SOURCE_KEYS = ['$path', '$package']

export function withoutSource(section: PluginSection): Record<string, unknown> {
  return Object.fromEntries(Object.entries(section).filter(([key]) => !SOURCE_KEYS.includes(key)))
}

/**
 * Imports one enabled plugin, from its file or from the catalog.
 * @throws Error if there is no such plugin or the module has no default export
 */
export async function importPlugin<T>(
  name: string,
  section: PluginSection,
  catalog: ModuleCatalog<T>,
): Promise<T> {
  const file = section.$path
  const open = Object.hasOwn(catalog, name) ? catalog[name] : undefined
  if (typeof file !== 'string' && open === undefined) throw new Error(`there is no plugin named ${name}`)
  const module: { default?: T } | undefined =
    typeof file === 'string' ? await import(pathToFileURL(file).href) : await open?.()
  if (module?.default === undefined)
    throw new Error(`plugin ${name}: the module has no default export; make it with definePlugin`)
  if (!isPlugin(module.default))
    throw new Error(
      `plugin ${name}: the default export of the module is not a plugin; make it with definePlugin`,
    )
  return module.default
}

/** Its type is that of TypeScript, which a JavaScript file does not have to follow. */
function isPlugin(value: unknown): boolean {
  if (!isObject(value) || !isObject(value.manifest)) return false
  return typeof value.manifest.name === 'string' && isObject(value.manifest.config)
}
