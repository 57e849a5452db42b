/** One request for every optional member, kind and value of an SDK's request type, each beside a request without it. */
import type { Json, Member, Shape } from './sdk-types.ts'

type ObjectShape = Extract<Shape, { kind: 'object' }>
export type JsonObject = { readonly [name: string]: Json }

export interface SdkCase {
  /** Such as `messages[user].content[image_url].image_url.detail: "high"`. */
  readonly path: string
  /** A kind of item, part or tool, which changes the meaning of a request; a member or value otherwise. */
  readonly isKind: boolean
  readonly body: JsonObject
  /** The same without the member, or before the object was added. */
  readonly before: JsonObject
}

export interface CaseOptions {
  /** Required members of the body. */
  readonly body: JsonObject
  /** Valid values for members whose type says too little, by path without kinds or by name. */
  readonly values: Readonly<Record<string, Json>>
  /** Paths that have no case. */
  readonly skipped: ReadonlySet<string>
  /** Completes the body around an element of a list, such as the call that a result belongs to. */
  readonly around: Readonly<Record<string, (element: Json) => readonly Json[]>>
  /** Further members without which the one of this path is invalid. */
  readonly beside: Readonly<Record<string, JsonObject>>
}

interface Choice {
  /** Kind of an object, or text of a value; empty if there is only one. */
  readonly label: string
  readonly value: Json
  /** What has further members, and how their object is put in place of `value`. */
  readonly inner: { readonly shape: ObjectShape; readonly wrap: (inner: JsonObject) => Json } | null
}

interface OpenObject {
  readonly shape: ObjectShape
  readonly path: string
  /** Without kinds and values. */
  readonly plainPath: string
  readonly required: JsonObject
  /** The body with this in place of the object. */
  readonly put: (value: JsonObject) => JsonObject
}

/** Each type once, at its shortest path. */
export function casesOf(shape: Shape, options: CaseOptions): SdkCase[] {
  if (shape.kind !== 'object') throw new Error('a request is an object')
  const cases: SdkCase[] = []
  const seen = new Set<number>()
  const open: OpenObject[] = [{ shape, path: '', plainPath: '', required: options.body, put: (body) => body }]
  for (let object = open.shift(); object !== undefined; object = open.shift()) {
    if (seen.has(object.shape.id)) continue
    seen.add(object.shape.id)
    for (const member of object.shape.members()) addCases(member, object, options, cases, open)
  }
  return cases.sort((a, b) => (a.path < b.path ? -1 : 1))
}

function addCases(
  member: Member,
  { path, plainPath, required, put }: OpenObject,
  options: CaseOptions,
  cases: SdkCase[],
  open: OpenObject[],
): void {
  const { name } = member
  const plain = plainPath === '' ? name : `${plainPath}.${name}`
  if (options.skipped.has(plain) || options.skipped.has(name)) return
  const at = path === '' ? name : `${path}.${name}`
  const without = { ...required, ...options.beside[plain] }
  for (const [index, { label, value, inner }] of choicesOf(member, plain, options).entries()) {
    const isKind = inner !== null && label !== ''
    const here = label === '' ? at : isKind ? `${at}[${label}]` : `${at}: ${label}`
    if (member.isOptional || index > 0)
      cases.push({ path: here, isKind, body: put({ ...without, [name]: value }), before: put(without) })
    if (inner !== null)
      open.push({
        shape: inner.shape,
        path: here,
        plainPath: plain,
        required: requiredOf(inner.shape, plain, options),
        put: (one) => put({ ...without, [name]: inner.wrap(one) }),
      })
  }
}

function choicesOf(member: Member, path: string, options: CaseOptions): readonly Choice[] {
  const { values, around } = options
  const surround = around[path] ?? ((element: Json) => [element])
  const given = values[path] ?? values[member.name]
  const shapes = member.shapes()
  const choices = shapes.flatMap((shape): Choice[] => {
    if (shape.kind === 'array') {
      const elements = shape.of().map((one) => choiceOf(one, path, options))
      return elements.map(({ label, value, inner }) => ({
        label: label || (elements.length > 1 || shapes.length > 1 ? '…' : ''),
        value: surround(value),
        inner: inner && { shape: inner.shape, wrap: (one) => surround(inner.wrap(one)) },
      }))
    }
    return [choiceOf(shape, path, options)]
  })
  if (given !== undefined) {
    // What the path allows beyond the given value are kinds of objects.
    const kinds = choices.filter(({ inner }) => inner !== null && inner.shape.members().length > 0)
    if (kinds.length === 0 || !member.isOptional)
      return [{ label: '', value: given, inner: null }, ...labelled(kinds)]
    return [{ label: 'value', value: given, inner: null }, ...labelled(kinds)]
  }
  if (choices.length === 1)
    return [{ ...choices[0], label: choices[0].inner === null ? '' : choices[0].label }]
  return labelled(choices)
}

/** Objects of the same kind are numbered. */
function labelled(choices: readonly Choice[]): readonly Choice[] {
  const counts = new Map<string, number>()
  return choices.map((choice) => {
    const label = choice.label || 'object'
    const count = (counts.get(label) ?? 0) + 1
    counts.set(label, count)
    return { ...choice, label: count === 1 ? label : `${label} ${count}` }
  })
}

function choiceOf(shape: Shape, path: string, options: CaseOptions): Choice {
  switch (shape.kind) {
    case 'object':
      return {
        label: kindOf(shape),
        value: requiredOf(shape, path, options),
        inner: { shape, wrap: (inner) => inner },
      }
    case 'value':
      return { label: JSON.stringify(shape.value), value: shape.value, inner: null }
    case 'array': {
      const [first] = shape.of()
      return {
        label: 'list',
        value: first === undefined ? [] : [choiceOf(first, path, options).value],
        inner: null,
      }
    }
    default:
      return { label: shape.kind, value: plainValue(shape.kind, path), inner: null }
  }
}

function plainValue(kind: 'string' | 'number' | 'boolean' | 'any', path: string): Json {
  const name = path.slice(path.lastIndexOf('.') + 1)
  return { string: `some ${name}`, number: 1, boolean: true, any: {} }[kind]
}

/** The (first) literal of its `type`, or else of its `role`; empty if it has neither. */
function kindOf(shape: ObjectShape): string {
  for (const name of ['type', 'role']) {
    const member = shape.members().find((one) => one.name === name)
    const values = member?.shapes() ?? []
    const [value] = values
    if (value?.kind === 'value' && values.every(({ kind }) => kind === 'value')) return String(value.value)
  }
  return ''
}

function requiredOf(shape: ObjectShape, path: string, options: CaseOptions): JsonObject {
  const required = shape.members().filter(({ isOptional }) => !isOptional)
  return Object.fromEntries(
    required.map((member) => {
      const at = `${path}.${member.name}`
      const given = options.values[at] ?? options.values[member.name]
      return [member.name, given ?? choicesOf(member, at, options)[0]?.value ?? null]
    }),
  )
}
