/** Checks one section of the configuration against its schema; reports every unknown key and invalid value. */
import type { TSchema } from '#kernel'
import { defineValidator } from '../../../kernel/schema/validate.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { closestKey } from './closest-key.ts'
import {
  branches,
  childAt,
  isSecret,
  knownKeys,
  membersOf,
  type SchemaNode,
  takesObject,
  toNode,
} from './schema-node.ts'

/** A problem inside a section. */
export interface Finding {
  readonly path: readonly string[]
  readonly text: string
  /** The actual value; absent for secrets. */
  readonly got?: string
}

interface CheckedSection {
  /** A copy with every default filled in; valid only without findings. */
  readonly value: Record<string, unknown>
  readonly findings: readonly Finding[]
}

/**
 * @param base path of the section in the file, such as `['kernel']`
 * @param section is not changed
 */
export function checkSection(
  schema: TSchema,
  section: Readonly<Record<string, unknown>>,
  base: readonly string[],
): CheckedSection {
  const node = toNode(schema)
  const value = structuredClone(section) as Record<string, unknown>
  const findings: Finding[] = []
  removeUnknownKeys(node, value, base, findings)
  findWrongValues(node, value, base, findings)
  fillDefaults(node, value)
  return { value, findings }
}

/**
 * The valid members of a section, so that checks across members find the rest in the same run.
 *
 * @param unresolved findings whose members are left out too
 * @returns null if the section is not valid without its wrong members
 */
export function validPart(
  schema: TSchema,
  { value, findings: found }: CheckedSection,
  unresolved: readonly Finding[],
  base: readonly string[],
): { value: Record<string, unknown>; wrong: ReadonlySet<string> } | null {
  if (found.length + unresolved.length === 0) return { value, wrong: new Set() }
  // The value has no unknown keys any more, so only its wrong values are found again.
  const findings = [...unresolved, ...checkSection(schema, value, base).findings]
  const wrong = new Set(findings.map(({ path }) => path[base.length] ?? ''))
  const rest = Object.fromEntries(Object.entries(value).filter(([key]) => !wrong.has(key)))
  const part = checkSection(schema, rest, base)
  return part.findings.length === 0 ? { value: part.value, wrong } : null
}

/** Reports unknown keys and removes them, so that the check of values does not report them again. */
function removeUnknownKeys(
  node: SchemaNode,
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): void {
  if (isObject(value) && !takesObject(node)) return
  for (const [key, child, member] of membersOf(node, value)) {
    if (child !== null) removeUnknownKeys(child, member, [...path, key], findings)
    else if (isObject(value)) {
      findings.push({
        path: [...path, key],
        text: replacedKeyText(node, key) ?? unknownKeyText(key, knownKeys(node), path),
      })
      delete value[key]
    }
  }
}

/** Names the settings that replace a removed one. */
function replacedKeyText({ replacedKeys = {} }: SchemaNode, key: string): string | null {
  return Object.hasOwn(replacedKeys, key) ? `was removed; use ${replacedKeys[key]}` : null
}

/** "is not known", with the nearest known path, or all known keys. */
export function unknownKeyText(key: string, known: readonly string[], path: readonly string[]): string {
  const near = closestKey(key, known)
  if (near !== null) return `is not known; did you mean ${[...path, near].join('.')}?`
  if (known.length === 0) return 'is not known; there are no settings here'
  return `is not known; known here: ${known.join(', ')}`
}

/** Keywords of schemas whose values are valid if their members are: no lengths, no unions, no secrets. */
const MEMBER_KEYWORDS = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'patternProperties', 'items'],
  ...['default', 'description', 'replacedKeys'],
])

function isMadeOfMembers(node: SchemaNode, value: unknown): boolean {
  const isOfType = node.type === 'object' ? isObject(value) : node.type === 'array' && Array.isArray(value)
  return isOfType && Object.keys(node).every((keyword) => MEMBER_KEYWORDS.has(keyword))
}

/**
 * Checks children first, then the value itself if they are valid. Secrets are checked as a whole. Only schemas of values that
 * are there are compiled: compiling those of a whole section takes longer than all else at the start of a command.
 */
function findWrongValues(
  node: SchemaNode,
  value: unknown,
  path: readonly string[],
  findings: Finding[],
): void {
  const isOfMembers = isMadeOfMembers(node, value)
  if (!isOfMembers && defineValidator(node as TSchema).problem(value) === null) return
  const before = findings.length
  if (!isSecret(node)) {
    for (const [key, child, member] of childrenOf(node, value)) {
      if (member === undefined) findings.push({ path: [...path, key], text: 'is required' })
      else findWrongValues(child, member, [...path, key], findings)
    }
  }
  if (!isOfMembers && findings.length === before) checkValue(node, value, path, findings)
}

/** As the validator does for the values that it checks. Defaults are valid. */
function fillDefaults(node: SchemaNode, value: unknown): void {
  if (!isMadeOfMembers(node, value)) return
  if (isObject(value))
    for (const [key, child] of Object.entries(node.properties ?? {}))
      if (child.default !== undefined && value[key] === undefined) value[key] = structuredClone(child.default)
  for (const [, child, member] of membersOf(node, value)) if (child !== null) fillDefaults(child, member)
}

/** Members of a value, and its missing required members. */
function* childrenOf(node: SchemaNode, value: unknown): Generator<[string, SchemaNode, unknown]> {
  if (isObject(value) && !takesObject(node)) return
  for (const [key, child, member] of membersOf(node, value))
    if (child !== null && member !== undefined) yield [key, child, member]
  if (!isObject(value)) return
  for (const key of requiredKeys(node)) {
    const child = childAt(node, key)
    if (child !== null && child.default === undefined && value[key] === undefined)
      yield [key, child, undefined]
  }
}

function requiredKeys(node: SchemaNode): readonly string[] {
  return node.anyOf === undefined ? branches(node).flatMap((branch) => branch.required ?? []) : []
}

function checkValue(node: SchemaNode, value: unknown, path: readonly string[], findings: Finding[]): void {
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

/** Describes a value in at most one line. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (isObject(value)) return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 57)}…"` : text
}
