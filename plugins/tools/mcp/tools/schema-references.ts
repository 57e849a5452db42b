/** References within a JSON Schema 2020-12, by pointer, anchor or identifier. Nothing outside of the schema is ever read. */
import { isObject } from '#kernel'

export type Schema = Readonly<Record<string, unknown>>

/** Keywords whose values are not schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required'])
/** Keywords whose members have names of the author. */
const MAPS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])
const REFERENCES = ['$ref', '$dynamicRef']
const ANCHORS = ['$anchor', '$dynamicAnchor']
/** For schemas without an identifier of their own. */
const BASE = 'schema:///'

interface SchemaNode {
  /** Objects and lists within, except data. */
  readonly parts: readonly object[]
  readonly references: readonly string[]
  /** Address against which references are resolved. */
  readonly base: string
}

export class SchemaReferences {
  readonly root: Schema
  readonly #nodes = new Map<object, SchemaNode>()
  /** By absolute address, with the fragment of an anchor. */
  readonly #addresses = new Map<string, object>()

  /** @param schema nested at most a few hundred levels */
  constructor(root: Schema) {
    this.root = root
    this.#addresses.set(BASE, root)
    this.#read(root, false, BASE)
  }

  node(value: object): SchemaNode {
    return this.#nodes.get(value) as SchemaNode
  }

  /** The schema or boolean that a reference of this node names; undefined if it is not part of the schema. */
  resolve(reference: string, base: string): unknown {
    if (!URL.canParse(reference, base)) return undefined
    const url = new URL(reference, base)
    const fragment = decode(url.hash.slice(1))
    url.hash = ''
    const anchored = fragment === '' || fragment.startsWith('/') ? '' : `#${fragment}`
    let found: unknown = this.#addresses.get(url.href + anchored)
    if (!fragment.startsWith('/')) return found
    for (const part of fragment.slice(1).split('/')) {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
      if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
      found = (found as Schema)[name]
    }
    return found
  }

  #read(value: object, isMap: boolean, outer: string): void {
    const isSchema = isObject(value) && !isMap
    const base = isSchema ? this.#register(value, outer) : outer
    const parts: object[] = []
    for (const [key, part] of Object.entries(value)) {
      if (typeof part !== 'object' || part === null || (isSchema && DATA.has(key))) continue
      parts.push(part)
      this.#read(part, isSchema && MAPS.has(key), base)
    }
    const references = isSchema ? REFERENCES.flatMap((key) => textOf(value[key])) : []
    this.#nodes.set(value, { parts, references, base })
  }

  /** @returns the base address within the schema */
  #register(schema: Schema, outer: string): string {
    const [id] = textOf(schema.$id)
    const base = id !== undefined && URL.canParse(id, outer) ? withoutFragment(id, outer) : outer
    if (base !== outer) this.#addresses.set(base, schema)
    for (const key of ANCHORS)
      for (const anchor of textOf(schema[key])) this.#addresses.set(`${base}#${anchor}`, schema)
    return base
  }
}

function textOf(value: unknown): string[] {
  return typeof value === 'string' ? [value] : []
}

function withoutFragment(id: string, base: string): string {
  const url = new URL(id, base)
  url.hash = ''
  return url.href
}

function decode(fragment: string): string {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return fragment
  }
}
