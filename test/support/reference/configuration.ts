/** The configuration reference, generated from the schemas of the kernel and of every plugin. */
import { KernelConfigSchema } from '../../../kernel/config/kernel-config.ts'
import type { Plugin } from '../../../kernel/plugin/define-plugin.ts'
import { catalog } from '../../../plugins/catalog.ts'
import { code, toPage, toTable } from './tables.ts'

interface Node {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly patternProperties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: boolean | Node
  readonly required?: readonly string[]
  readonly items?: Node
  readonly anyOf?: readonly Node[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly description?: string
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
}

export async function configurationPage(): Promise<string> {
  const sections = [sectionOf('kernel', KernelConfigSchema as Node, '')]
  for (const name of Object.keys(catalog).sort()) {
    const { default: plugin } = (await catalog[name]()) as { default: Plugin }
    const { config, description } = plugin.manifest
    sections.push(sectionOf(`plugins.${name}`, config as Node, description))
  }
  return toPage(
    'Configuration reference',
    'Every setting of the configuration file. How files, flags and environment variables combine: [configuration](../guide/configuration.md).',
    ...sections,
  )
}

function sectionOf(path: string, schema: Node, description: string): string {
  const rows = [...rowsOf(schema, '')]
  const body =
    rows.length === 0 ? 'No settings.' : toTable(['setting', 'type', 'default', 'description'], rows)
  return [`## ${path}`, description, body].filter((part) => part !== '').join('\n\n')
}

function* rowsOf(node: Node, prefix: string): Generator<string[]> {
  for (const branch of node.anyOf ?? [node]) {
    for (const [key, child] of Object.entries(branch.properties ?? {})) {
      const path = `${prefix}${key}`
      const isRequired = branch.required?.includes(key) === true && child.default === undefined
      yield [code(path), typeOf(child), isRequired ? 'required' : defaultOf(child), child.description ?? '']
      yield* rowsOf(child, `${path}.`)
      for (const item of child.items === undefined ? [] : [child.items]) yield* rowsOf(item, `${path}[].`)
      for (const value of valuesOf(child)) yield* rowsOf(value, `${path}.<name>.`)
    }
  }
}

function valuesOf({ patternProperties, additionalProperties }: Node): Node[] {
  const values = Object.values(patternProperties ?? {})
  return typeof additionalProperties === 'object' ? [...values, additionalProperties] : values
}

function typeOf(node: Node): string {
  if (node.anyOf !== undefined) return node.anyOf.map(typeOf).join(' or ')
  if (node.const !== undefined) return code(JSON.stringify(node.const))
  if (node.enum !== undefined) return node.enum.map((value) => code(JSON.stringify(value))).join(' or ')
  if (node.type === 'array') return `list of ${node.items === undefined ? 'values' : typeOf(node.items)}`
  return `${node.type ?? 'any'}${rangeOf(node)}`
}

function rangeOf({ minimum, exclusiveMinimum, maximum }: Node): string {
  const low =
    minimum !== undefined ? `≥ ${minimum}` : exclusiveMinimum !== undefined ? `> ${exclusiveMinimum}` : ''
  const high = maximum === undefined ? '' : `≤ ${maximum}`
  return low === '' && high === '' ? '' : ` (${[low, high].filter((bound) => bound !== '').join(', ')})`
}

function defaultOf({ default: value }: Node): string {
  const isEmptySection = typeof value === 'object' && value !== null && Object.keys(value).length === 0
  if (value === undefined || (isEmptySection && !Array.isArray(value))) return ''
  return code(JSON.stringify(value))
}
