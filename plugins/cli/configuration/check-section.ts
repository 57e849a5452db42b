/** Checks one section of the configuration against its schema: every unknown key and every wrong value at once. */
import type { TSchema } from '#kernel'
import { defineValidator } from '../../../kernel/schema/validate.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { closestKey } from './closest-key.ts'
import {
  branches,
  childAt,
  isSecret,
  itemsOf,
  knownKeys,
  type SchemaNode,
  takesObject,
  toNode,
} from './schema-node.ts'

/** A problem inside a section. */
export interface Finding {
  readonly path: readonly string[]
  readonly text: string
  /** What stood there instead; left out for secrets. */
  readonly got?: string
}

export interface CheckedSection {
  /** A copy with every default filled in; of use only when there are no findings. */
  readonly value: Record<string, unknown>
  readonly findings: readonly Finding[]
}

/**
 * @param base path of the section in the file, such as `['kernel']`
 * @param section left as it is
 */
export function checkSection(
  schema: TSchema,
  section: Readonly<Record<string, unknown>>,
  base: readonly string[],
): CheckedSection {
  const node = toNode(schema)
  const value = structuredClone(section) as Record<string, unknown>
  const findings: Finding[] = []
  takeOutUnknownKeys(node, value, base, findings)
  // One compilation when all is well; the search for each fault is paid for by configurations that have one.
  if (defineValidator(schema).problem(value) !== null) findWrongValues(node, value, base, findings)
  return { value, findings }
}

/** Unknown keys are reported and removed, so that the check of types does not stumble over them again. */
function takeOutUnknownKeys(
  node: SchemaNode,
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): void {
  if (Array.isArray(value)) {
    const items = itemsOf(node)
    if (items === null) return
    for (const [index, item] of value.entries())
      takeOutUnknownKeys(items, item, [...path, String(index)], findings)
    return
  }
  if (!isObject(value) || !takesObject(node)) return
  for (const key of Object.keys(value)) {
    const child = childAt(node, key)
    if (child === null) {
      findings.push({ path: [...path, key], text: unknownKeyText(key, knownKeys(node), path) })
      delete value[key]
    } else {
      takeOutUnknownKeys(child, value[key], [...path, key], findings)
    }
  }
}

/** "is not known", with the nearest known path or, failing that, all that there are. */
export function unknownKeyText(key: string, known: readonly string[], path: readonly string[]): string {
  const near = closestKey(key, known)
  if (near !== null) return `is not known; did you mean ${[...path, near].join('.')}?`
  if (known.length === 0) return 'is not known; there are no settings here'
  return `is not known; known here: ${known.join(', ')}`
}

/** Children first; only when they are all right is the value itself to blame. A secret is judged whole, unseen. */
function findWrongValues(
  node: SchemaNode,
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): void {
  const before = findings.length
  if (!isSecret(node)) {
    for (const [key, child, member] of childrenOf(node, value)) {
      if (member === undefined) findings.push({ path: [...path, key], text: 'is required' })
      else findWrongValues(child, member, [...path, key], findings)
    }
  }
  if (findings.length === before) judge(node, value, path, findings)
}

/** What stands below a value, and what is missing there. */
function* childrenOf(node: SchemaNode, value: unknown): Generator<[string, SchemaNode, unknown]> {
  if (isObject(value) && takesObject(node)) {
    const required = requiredKeys(node)
    for (const key of new Set([...Object.keys(value), ...required])) {
      const child = childAt(node, key)
      // The validator stops at the first fault, so that defaults behind it are not filled in yet.
      const isMissing = required.includes(key) && child?.default === undefined
      if (child !== null && (value[key] !== undefined || isMissing)) yield [key, child, value[key]]
    }
  }
  const items = Array.isArray(value) ? itemsOf(node) : null
  if (Array.isArray(value) && items !== null) {
    for (const [index, item] of value.entries()) yield [String(index), items, item]
  }
}

function requiredKeys(node: SchemaNode): readonly string[] {
  return node.anyOf === undefined ? branches(node).flatMap((branch) => branch.required ?? []) : []
}

function judge(node: SchemaNode, value: unknown, path: readonly string[], findings: Finding[]): void {
  const problem = defineValidator(node as TSchema).problem(value)
  if (problem === null) return
  const deeper = problem.field === '' ? [] : problem.field.split('.')
  const got = isSecret(node) ? undefined : describeValue(valueAt(value, deeper))
  findings.push({ path: [...path, ...deeper], text: problem.text, got })
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  let current = value
  for (const key of path) current = (current as Record<string, unknown> | undefined)?.[key]
  return current
}

/** A value as an operator would recognise it, short enough for one line. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (isObject(value)) return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 57)}…"` : text
}
