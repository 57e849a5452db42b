/** One body for every optional member, kind and value of an SDK's type, each beside a body without it. */
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
  /** What an object needs although each of its members is optional, by kind or path without kinds. */
  readonly completed?: Readonly<Record<string, JsonObject>>
  /** Members of which an object has one, by path without kinds: the other one that `completed` has. */
  readonly replaces?: Readonly<Record<string, string>>
  /** Of an answer. */
  readonly answer?: AnswerCaseOptions
}

/** Answers have cases of required members too, and of members, kinds and values that the type does not have. */
interface AnswerCaseOptions {
  /** What stands around an element of a list that is left out. Default: what the body has. */
  readonly without: Readonly<Record<string, (element: Json) => readonly Json[]>>
}

interface Choice {
  /** Kind of an object, or text of a value; empty if there is only one. */
  readonly label: string
  readonly value: Json
  /** In place of `value`, for a body without it. Default: what the body has. */
  readonly without?: Json
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
  if (shape.kind !== 'object') throw new Error('a body is an object')
  const cases: SdkCase[] = []
  const seen = new Set([UNKNOWN.id])
  const open: OpenObject[] = [{ shape, path: '', plainPath: '', required: options.body, put: (body) => body }]
  for (let object = open.shift(); object !== undefined; object = open.shift()) {
    if (seen.has(object.shape.id)) continue
    seen.add(object.shape.id)
    if (options.answer !== undefined && !options.skipped.has(`${object.plainPath}.`))
      cases.push(unknownMember(object))
    for (const member of object.shape.members()) addCases(member, object, options, cases, open)
  }
  return cases.sort((a, b) => (a.path < b.path ? -1 : 1))
}

function unknownMember({ path, required, put }: OpenObject): SdkCase {
  const name = 'some_new_member'
  return {
    path: path === '' ? name : `${path}.${name}`,
    isKind: false,
    body: put({ ...required, [name]: 'new' }),
    before: put(required),
  }
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
  const at = path === '' ? name : `${path}.${name}`
  if ([plain, name, at].some((one) => options.skipped.has(one))) return
  const without = { ...required, ...options.beside[plain] }
  const { [options.replaces?.[plain] ?? '']: _, ...kept } = without
  const choices = choicesOf(member, plain, options)
  for (const [index, choice] of choices.entries()) {
    const { label, value, inner } = choice
    const isKind = inner !== null && label !== ''
    const here = label === '' ? at : isKind ? `${at}[${label}]` : `${at}: ${label}`
    const other = index > 0 || options.answer === undefined ? undefined : otherThan(choice, member)
    const instead = choice.without ?? other
    if (member.isOptional || index > 0 || instead !== undefined) {
      const before =
        instead === undefined || (member.isOptional && choice.without === undefined)
          ? without
          : { ...without, [name]: instead }
      cases.push({ path: here, isKind, body: put({ ...kept, [name]: value }), before: put(before) })
    }
    if (inner !== null)
      open.push({
        shape: inner.shape,
        path: here,
        plainPath: plain,
        required: requiredOf(inner.shape, plain, options),
        put: (one) => put({ ...kept, [name]: inner.wrap(one) }),
      })
  }
}

/** Another value of a required member; undefined for what every body has. */
function otherThan({ value, inner }: Choice, { isNullable, shapes }: Member): Json | undefined {
  if (isNullable) return null
  if (inner !== null || shapes().some(({ kind }) => kind === 'value')) return undefined
  if (typeof value === 'string') return `other than ${value}`
  if (typeof value === 'number') return value + 1
  return typeof value === 'boolean' ? !value : undefined
}

function choicesOf(member: Member, path: string, options: CaseOptions): readonly Choice[] {
  const choices = knownChoices(member, path, options)
  if (options.answer === undefined || choices.length < 2) return choices
  if (choices.every(({ value }) => typeof value === 'string'))
    return [...choices, { label: '"some_new_value"', value: 'some_new_value', inner: null }]
  if (choices.some(({ inner }) => inner === null)) return choices
  const isList = member.shapes().some(({ kind }) => kind === 'array')
  const unknown = { type: 'some_new_kind', some_new_member: 'new' }
  return [
    ...choices,
    ...(isList ? listChoices([choiceOfUnknown(unknown)], path, options, true) : [choiceOfUnknown(unknown)]),
  ]
}

const UNKNOWN: ObjectShape = { kind: 'object', id: -1, members: () => [] }

function choiceOfUnknown(value: JsonObject): Choice {
  return {
    label: String(value.type),
    value,
    inner: { shape: UNKNOWN, wrap: (inner) => ({ ...value, ...inner }) },
  }
}

function listChoices(
  elements: readonly Choice[],
  path: string,
  { around, answer }: CaseOptions,
  isOneOfSeveral: boolean,
): Choice[] {
  const surround = around[path] ?? ((element: Json) => [element])
  const without = answer?.without[path]
  return elements.map(({ label, value, inner }) => ({
    label: label || (isOneOfSeveral ? '…' : ''),
    value: surround(value),
    without: without?.(value),
    inner: inner && { shape: inner.shape, wrap: (one) => surround(inner.wrap(one)) },
  }))
}

function knownChoices(member: Member, path: string, options: CaseOptions): readonly Choice[] {
  const { values } = options
  const given = values[path] ?? values[member.name]
  // The role whose messages have every kind of part is the base.
  const isUser = (shape: Shape) => Number(shape.kind === 'value' && shape.value === 'user')
  const shapes = member.shapes().toSorted((a, b) => isUser(b) - isUser(a))
  const choices = shapes.flatMap((shape): Choice[] => {
    if (shape.kind === 'array') {
      const elements = shape.of().map((one) => choiceOf(one, path, options))
      return listChoices(elements, path, options, elements.length > 1 || shapes.length > 1)
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
  const members = Object.fromEntries(
    required.map((member) => {
      const at = `${path}.${member.name}`
      const given = options.values[at] ?? options.values[member.name]
      return [member.name, given ?? choicesOf(member, at, options)[0]?.value ?? null]
    }),
  )
  return { ...members, ...(options.completed?.[kindOf(shape)] ?? options.completed?.[path]) }
}
