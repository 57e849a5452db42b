/** Validation with ajv: compiles a TypeBox schema to a function that reports the first invalid field. The only user of ajv. */
import { createRequire } from 'node:module'
import type { ErrorObject, ValidateFunction } from 'ajv'
import type { Static, TSchema } from 'typebox'
import { defineErrors } from '../errors/define-errors.ts'
import { shareParts } from './shared-parts.ts'
import { shortValue, shownValue } from './shown-value.ts'

const schemaErrors = defineErrors('schema', {
  invalid_field: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `${field === '' ? 'the body' : `field '${field}'`} ${problem}`,
  },
})

/** The first thing that is wrong with a value. */
export interface FieldProblem {
  /** Dotted path; empty for the value itself. */
  readonly field: string
  /** What was expected, such as `must be a string`. */
  readonly text: string
  /** `missing`: absent, or null in an object; `empty`: nothing in it; `tag`: a type that no member of the union has. */
  readonly kind: 'missing' | 'empty' | 'type' | 'value' | 'tag'
  /** The wrong value in short; null if there is none, or if it may be a credential. */
  readonly got: string | null
}

/** What was expected, and the value in its place. */
export function problemText({ text, got }: FieldProblem): string {
  return got === null ? text : `${text} (got ${got})`
}

/** Checks values of one schema. */
export interface Validator<T> {
  readonly schema: TSchema
  /** @throws invalid_field (400), or the validator's own error, for the first wrong field. Fills in defaults in place. */
  parse(value: unknown): T
  /** Null when nothing is wrong. */
  problem(value: unknown): FieldProblem | null
}

const require = createRequire(import.meta.url)

/**
 * By an instance of its own, so that the code is collected with the validator: an instance keeps what it has compiled. The
 * library is loaded with the first schema: it costs 10 MB, which a thread without validated requests saves.
 */
function compile(schema: TSchema): ValidateFunction {
  const { Ajv } = require('ajv') as typeof import('ajv')
  return new Ajv({
    useDefaults: true,
    allErrors: false,
    strict: false,
    allowUnionTypes: true,
    // `oneOf` with a `discriminator` checks the one member that the value names.
    discriminator: true,
    verbose: true,
    // Schemas are trusted and most are used a few times; these took half of the start-up time.
    meta: false,
    validateSchema: false,
    // Formats are for the documents of the API alone.
    validateFormats: false,
    code: { optimize: false },
    // References are parts that several places share.
    inlineRefs: false,
  }).compile(shareParts(schema))
}

/**
 * Compiled on first use, so that a schema costs nothing until a request needs it.
 *
 * @param toError makes the error that `parse` throws, for formats with error codes of their own
 */
export function defineValidator<S extends TSchema>(
  schema: S,
  toError: (problem: FieldProblem) => Error = toInvalidField,
): Validator<Static<S>> {
  let compiled: ValidateFunction | null = null
  const problem = (value: unknown) => {
    compiled ??= compile(schema)
    if (compiled(value)) return null
    return explain(compiled.errors ?? [])
  }
  return {
    schema,
    problem,
    parse(value) {
      const found = problem(value)
      if (found !== null) throw toError(found)
      return value as Static<S>
    },
  }
}

function toInvalidField(problem: FieldProblem): Error {
  const { field } = problem
  return schemaErrors.invalid_field.with({ param: field || undefined }, field, problemText(problem))
}

export function explain(errors: readonly ErrorObject[]): FieldProblem {
  // Of a union that nothing fits, the branches come first and the union last.
  const last = errors.at(-1)
  if (last === undefined) return { field: '', text: 'is not valid', kind: 'value', got: null }
  if (last.keyword === 'if') return explain(errors.slice(0, -1))
  if (last.keyword !== 'anyOf' && last.keyword !== 'oneOf') return explainOne(last)
  // A branch that fails by a limit instead of the type is the intended one.
  const meant = errors.find((error) => error.instancePath === last.instancePath && isBeyondType(error))
  const options = meant === undefined ? unionNames(last) : null
  if (options !== null)
    return { field: fieldOf(last), text: expectedText(options), kind: kindOf(last), got: shownValue(last) }
  // Failing that, the branch that got furthest; a union inside of it is explained by its own branches.
  const deepest = errors.reduce((best, error) =>
    error.instancePath.length > best.instancePath.length ? error : best,
  )
  if (deepest.instancePath.length <= last.instancePath.length) return explainOne(meant ?? deepest)
  return explain(errors.filter(({ instancePath }) => instancePath === deepest.instancePath))
}

/** The type was right and the value was not: such as 0 where 1 is the least. */
function isBeyondType(error: ErrorObject): boolean {
  return LIMITS.has(error.keyword)
}

const LIMITS = new Set([
  'enum',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
])

interface UnionMember {
  readonly anyOf?: readonly UnionMember[]
  readonly const?: unknown
  readonly type?: string
}

/** Names of a union's members for a value that matches none; null if a member is an object or array that may be intended. */
function unionNames(error: ErrorObject): string[] | null {
  const schema = error.parentSchema as { anyOf?: UnionMember[]; oneOf?: UnionMember[] } | undefined
  const members = (schema?.anyOf ?? schema?.oneOf ?? []).flatMap((member) => member.anyOf ?? [member])
  const isObject = typeof error.data === 'object' && error.data !== null
  if (isObject && members.some((member) => member.type === 'object' || member.type === 'array')) return null
  const wanted = members.filter((member) => member.type !== 'null')
  const names = wanted.map((member) =>
    member.const === undefined ? member.type : JSON.stringify(member.const),
  )
  const known = names.filter((name) => name !== undefined)
  return known.length === names.length && known.length > 0 ? [...new Set(known)] : null
}

/** @param names of types, or constants as JSON */
function expectedText(names: readonly string[]): string {
  // Null means absent and is no useful hint.
  const wanted = names.filter((name) => name !== 'null')
  const isTypes = wanted.every((name) => withArticle(name) !== name)
  return wanted.length === 1 || isTypes
    ? `must be ${wanted.map(withArticle).join(' or ')}`
    : `must be one of ${wanted.join(', ')}`
}

/** A type name with its article; any other text unchanged. */
function withArticle(name: string): string {
  if (name === 'string' || name === 'number' || name === 'boolean') return `a ${name}`
  return name === 'integer' || name === 'object' || name === 'array' ? `an ${name}` : name
}

function explainOne(error: ErrorObject): FieldProblem {
  const field = fieldOf(error)
  const kind = kindOf(error)
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'required':
      return { field: join(field, String(params.missingProperty)), text: 'is required', kind, got: null }
    case 'discriminator':
      return tagProblem(join(field, String(params.tag)), error)
    case 'additionalProperties':
      return { field: join(field, String(params.additionalProperty)), text: 'is not known', kind, got: null }
    default: {
      const text = TEXTS[error.keyword]?.(params, error) ?? error.message ?? 'is not valid'
      return { field, text, kind, got: kind === 'empty' ? null : shownValue(error) }
    }
  }
}

/** By keyword of the schema. */
const TEXTS: Readonly<Record<string, (params: Record<string, unknown>, error: ErrorObject) => string>> = {
  enum: ({ allowedValues }) =>
    `must be one of ${(allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(', ')}`,
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  type: ({ type }) => expectedText([type].flat().map(String)),
  minItems: ({ limit }) => countText('least', limit, 'items'),
  maxItems: ({ limit }) => countText('most', limit, 'items'),
  minLength: ({ limit }) => countText('least', limit, 'characters'),
  maxLength: ({ limit }, { propertyName }) =>
    countText('most', limit, `characters${propertyName === undefined ? '' : ' in each key'}`),
  maxProperties: ({ limit }) => countText('most', limit, 'properties'),
}

function tagProblem(field: string, { params, parentSchema }: ErrorObject): FieldProblem {
  const { error, tag, tagValue } = params as { error: string; tag: string; tagValue: unknown }
  if (tagValue === undefined || tagValue === null)
    return { field, text: 'is required', kind: 'missing', got: null }
  if (error === 'tag') return { field, text: 'must be a string', kind: 'type', got: shortValue(tagValue) }
  const members = parentSchema?.oneOf as { properties: Record<string, UnionMember> }[]
  const known = members.map(({ properties }) => JSON.stringify(properties[tag].const)).join(', ')
  return { field, text: `must be one of ${known}`, kind: 'tag', got: shortValue(tagValue) }
}

function kindOf(error: ErrorObject): FieldProblem['kind'] {
  const { keyword, data, instancePath } = error
  const isMember = instancePath !== '' && !/\/\d+$/.test(instancePath)
  if (keyword === 'required' || (data === null && isMember)) return 'missing'
  if ((keyword === 'minLength' || keyword === 'minItems') && (data as string | unknown[]).length === 0)
    return 'empty'
  if (keyword === 'type') return 'type'
  const members = (error.schema as UnionMember[] | undefined) ?? []
  if (keyword === 'anyOf' || keyword === 'oneOf')
    return members.some((member) => member.const !== undefined) ? 'value' : 'type'
  return 'value'
}

function countText(bound: 'least' | 'most', limit: unknown, what: string): string {
  return bound === 'least' && limit === 1 ? 'must not be empty' : `must have at ${bound} ${limit} ${what}`
}

/** Dotted path of the invalid value; empty for the whole. */
function fieldOf(error: ErrorObject): string {
  return error.instancePath.slice(1).split('/').filter(Boolean).map(unescapePointer).join('.')
}

function join(base: string, key: string): string {
  return base === '' ? key : `${base}.${key}`
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
