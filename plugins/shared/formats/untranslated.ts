/** Finds what a translation leaves out: members and kinds of a body that it does not read, whatever they are. */
import { isDeepStrictEqual } from 'node:util'
import { isObject, type RequestContext, type TSchema } from '#kernel'
import { ignoredMembers } from './headers.ts'

/** What of a value is read: all of it, the named members, or those of its kind. */
export type Translation = true | TranslatedMembers | TranslatedKinds

/** Names of members that stand for each other: only the first that is present is read. */
export const FIRST_OF = Symbol('names of which the first is read')

interface TranslatedMembers {
  readonly [member: string]: Translation
  readonly [FIRST_OF]?: readonly (readonly string[])[]
}

/** Objects that are distinguished by their `type`. */
export class TranslatedKinds {
  readonly #kinds: ReadonlyMap<unknown, Translation>
  readonly #others: true | null

  /** @param others null if objects of other kinds are left out; true if they are read or rejected */
  constructor(kinds: Readonly<Record<string, Translation>>, others: true | null) {
    this.#kinds = new Map(Object.entries(kinds))
    this.#others = others
  }

  /** Null for a kind that is left out. */
  of({ type }: Readonly<Record<string, unknown>>): Translation | null {
    return this.#kinds.get(type) ?? this.#others
  }
}

/** Workers choose the names. */
const MAX_PATHS = 100

/** What an answer of a worker has and the client does not get. */
export class LeftOut {
  readonly #paths = new Set<string>()

  add(path: string): void {
    if (this.#paths.size < MAX_PATHS) this.#paths.add(path)
  }

  /** Adds what the translation of a part of the answer does not read. */
  addFrom(value: unknown, translation: Translation, path = ''): void {
    if (this.#paths.size < MAX_PATHS) collect(value, translation, path, this.#paths)
  }

  /** Call before the end of the answer. */
  report(ctx: RequestContext): void {
    for (const warning of ignoredMembers([...this.#paths])) ctx.warn(warning)
  }
}

/** Names in `x-weir-warning` the members of a body that are not read. Call before the response. */
export function warnOfUnread(ctx: RequestContext, body: unknown, read: Translation): void {
  for (const warning of ignoredMembers(untranslatedPaths(body, read))) ctx.warn(warning)
}

/** The members that a schema names, those of nested objects as well; all of an object whose schema takes others. */
export function knownMembers(schema: TSchema): Translation {
  const { properties, additionalProperties, items, anyOf } = schema as JsonSchema
  if (anyOf !== undefined) {
    const named = anyOf.map(knownMembers).filter((one) => one !== true)
    return named.length === 1 ? named[0] : true
  }
  if (items !== undefined) return knownMembers(items)
  if (properties === undefined || additionalProperties === true) return true
  return Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, knownMembers(member)]))
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly additionalProperties?: unknown
  readonly items?: TSchema
  readonly anyOf?: readonly TSchema[]
}

/** @returns paths without indexes, each once; a null member counts as absent */
export function untranslatedPaths(value: unknown, translation: Translation): string[] {
  const found = new Set<string>()
  collect(value, translation, '', found)
  return [...found]
}

function collect(value: unknown, translation: Translation, path: string, found: Set<string>): void {
  if (translation === true || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const one of value) collect(one, translation, path, found)
    return
  }
  if (!isObject(value)) return
  if (translation instanceof TranslatedKinds) {
    const kind = translation.of(value)
    // A worker may send anything as the type; `String` throws for some objects.
    if (kind === null) found.add(`${path}.${typeof value.type === 'string' ? value.type : 'type'}`)
    else collect(value, kind, path, found)
    return
  }
  for (const name in value) {
    const member = value[name]
    if (member === null || member === undefined) continue
    const inner = Object.hasOwn(translation, name) ? translation[name] : null
    if (inner === true) continue
    if (inner === null) found.add(pathTo(name, path))
    else collect(member, inner, pathTo(name, path), found)
  }
  const { [FIRST_OF]: alike } = translation
  if (alike === undefined) return
  for (const names of alike) {
    const [first, ...others] = names.filter((name) => value[name] != null)
    for (const name of others)
      if (!isDeepStrictEqual(value[name], value[first])) found.add(pathTo(name, path))
  }
}

function pathTo(name: string, path: string): string {
  return path === '' ? name : `${path}.${name}`
}
