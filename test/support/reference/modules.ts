/** The module reference: imports between folders and dependencies between plugins, read from sources and manifests. */
import type { Plugin } from '../../../kernel/plugin/define-plugin.ts'
import { catalog, defaultProviders } from '../../../plugins/catalog.ts'
import { arrows, isPackage, isTest, moduleOf } from '../../architecture/import-graph.ts'
import { code, toPage, toTable } from './tables.ts'

const codes = (names: Iterable<string>) => [...names].sort().map(code).join(', ')

/** @throws if a plugin requires a service that no plugin provides */
export async function modulesPage(): Promise<string> {
  return toPage(
    'Module reference',
    'Which folder imports which, and which plugin needs which. What each folder holds: [architecture](../architecture.md).',
    '## Imports',
    'Tests are left out. `types` are imports that are erased before the code runs.',
    importTable(),
    '## Plugins',
    'A plugin that is `required` is enabled on its own where the configuration does not mention it, if it has a default.',
    await pluginTable(),
  )
}

interface ModuleImports {
  readonly values: Set<string>
  readonly types: Set<string>
  readonly packages: Set<string>
}

function importTable(): string {
  const modules = new Map<string, ModuleImports>()
  const inside = arrows.filter(({ from }) => /^(kernel|plugins|wasm-sdk)\//.test(from) && !isTest(from))
  for (const { from, to, isType } of inside) {
    const name = moduleOf(from)
    const imports = modules.get(name) ?? { values: new Set(), types: new Set(), packages: new Set() }
    modules.set(name, imports)
    const target = moduleOf(to)
    if (to.startsWith('node:') || target === name) continue
    const set =
      to.startsWith('#') || !isPackage(to) ? (isType ? imports.types : imports.values) : imports.packages
    set.add(isPackage(to) ? packageOf(to) : target)
  }
  const rows = [...modules]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { values, types, packages }]) => [
      code(name),
      codes(values),
      codes([...types].filter((to) => !values.has(to))),
      codes(packages),
    ])
  return toTable(['folder', 'imports', 'types', 'packages'], rows)
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

async function pluginTable(): Promise<string> {
  const manifests = await Promise.all(
    Object.values(catalog).map(async (load) => ((await load()) as { default: Plugin }).default.manifest),
  )
  const providersOf = (service: string) => {
    const names = manifests
      .filter(({ provides }) => provides?.some(({ name }) => name === service))
      .map(({ name }) => name)
    if (names.length === 0) throw new Error(`no plugin provides the service ${service}`)
    const preferred = defaultProviders[service]
    return preferred === undefined ? names : [preferred]
  }
  const rows = manifests
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, uses = [], usesOptionally = [], dependencies = [], optionalDependencies = [] }) => {
      const required = new Set([...dependencies, ...uses.flatMap((token) => providersOf(token.name))])
      const optional = new Set([
        ...optionalDependencies,
        ...usesOptionally.flatMap((token) => providersOf(token.name)),
      ])
      return [code(name), codes(required), codes([...optional].filter((other) => !required.has(other)))]
    })
  return toTable(['plugin', 'required', 'used if enabled'], rows)
}
