/** Reads TypeBox schemas as data: schemas of members and items, through unions and records. */
import type { TSchema } from '#kernel'
import { isObject } from '../../../kernel/wire/is-object.ts'

/** The JSON Schema members that configuration schemas use. */
export interface SchemaNode {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | SchemaNode
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
  readonly anyOf?: readonly SchemaNode[]
  readonly allOf?: readonly SchemaNode[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly description?: string
  /** Extension of the gateway: the value is a secret and is never shown. */
  readonly secret?: boolean
  /** Extension of the gateway: the value is the path of a file that is read at the start, or only when it is used. */
  readonly reads?: 'start' | 'use'
  /** Extension of the gateway: removed keys, and what to use instead. */
  readonly replacedKeys?: Readonly<Record<string, string>>
}

const ANYTHING: SchemaNode = Object.freeze({})

export function toNode(schema: TSchema): SchemaNode {
  return schema as SchemaNode
}

/** The schema itself, or the branches of its union or intersection. */
export function branches(node: SchemaNode): readonly SchemaNode[] {
  const parts = node.anyOf ?? node.allOf
  return parts === undefined ? [node] : parts.flatMap(branches)
}

/** A branch without constraints accepts any value. */
function isAnything(node: SchemaNode): boolean {
  return node.type === undefined && node.const === undefined && node.enum === undefined
}

/** Schema of a member; null if the key is not known. */
export function childAt(node: SchemaNode, key: string): SchemaNode | null {
  const found: SchemaNode[] = []
  for (const branch of branches(node)) {
    const child = isAnything(branch) ? ANYTHING : childOfObject(branch, key)
    if (child !== null) found.push(child)
  }
  if (found.length === 0) return null
  return found.length === 1 ? found[0] : { anyOf: found }
}

/** Objects are closed unless their schema allows additional properties. */
function childOfObject(node: SchemaNode, key: string): SchemaNode | null {
  if (node.properties !== undefined && Object.hasOwn(node.properties, key)) return node.properties[key]
  for (const [pattern, child] of Object.entries(node.patternProperties ?? {})) {
    if (new RegExp(pattern, 'u').test(key)) return child
  }
  if (node.additionalProperties === true) return ANYTHING
  return typeof node.additionalProperties === 'object' ? node.additionalProperties : null
}

/** Whether a branch accepts an object. */
export function takesObject(node: SchemaNode): boolean {
  return branches(node).some((branch) => isAnything(branch) || branch.type === 'object')
}

/** Schema of array items; null if no branch accepts an array. */
export function itemsOf(node: SchemaNode): SchemaNode | null {
  const found = branches(node).flatMap((branch) => {
    if (isAnything(branch)) return [ANYTHING]
    return branch.type === 'array' ? [branch.items ?? ANYTHING] : []
  })
  if (found.length === 0) return null
  return found.length === 1 ? found[0] : { anyOf: found }
}

/** Members of an object and items of an array, each with its schema; null for those that the schema does not know. */
export function* membersOf(
  node: SchemaNode,
  value: unknown,
): Generator<[key: string, child: SchemaNode | null, member: unknown]> {
  if (Array.isArray(value)) {
    const items = itemsOf(node)
    for (const [index, item] of value.entries()) yield [String(index), items, item]
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) yield [key, childAt(node, key), value[key]]
  }
}

/** All declared keys of an object. */
export function knownKeys(node: SchemaNode): string[] {
  return [...new Set(branches(node).flatMap((branch) => Object.keys(branch.properties ?? {})))]
}

/** The schema at a path; null if there is none. */
export function nodeAt(node: SchemaNode, path: readonly string[]): SchemaNode | null {
  let current: SchemaNode | null = node
  for (const key of path) {
    if (current === null) return null
    const isIndex = /^\d+$/.test(key)
    current = childAt(current, key) ?? (isIndex ? itemsOf(current) : null)
  }
  return current
}

/** Whether the schema or a branch of its union is marked as secret. */
export function isSecret(node: SchemaNode): boolean {
  return node.secret === true || branches(node).some((branch) => branch.secret === true)
}
