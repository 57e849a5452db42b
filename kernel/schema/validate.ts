/** Validation with ajv: compiles a TypeBox schema to a function that reports the first invalid field. The only user of ajv. */
import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { Static, TSchema } from 'typebox'
import { defineErrors } from '../errors/define-errors.ts'

export const schemaErrors = defineErrors('schema', {
  invalid_field: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `${field === '' ? 'the body' : `field '${field}'`} ${problem}`,
  },
})

/** Validates values of one schema. */
export interface Validator<T> {
  readonly schema: TSchema
  /** Fills in defaults in place. @throws invalid_field (400) naming the first invalid field */
  parse(value: unknown): T
  /** The first problem, or null. The field is a dotted path, empty for the value itself. */
  problem(value: unknown): { field: string; text: string } | null
}

const require = createRequire(import.meta.url)
let ajv: Ajv | null = null

/** Loaded with the first compiled schema: it costs 10 MB, which a thread without validated requests saves. */
function openAjv(): Ajv {
  if (ajv !== null) return ajv
  const library = require('ajv') as typeof import('ajv')
  ajv = new library.Ajv({
    useDefaults: true,
    allErrors: false,
    strict: false,
    allowUnionTypes: true,
    verbose: true,
    // Schemas are trusted and most are used a few times; these two took half of the start-up time.
    validateSchema: false,
    code: { optimize: false },
  })
  return ajv
}

/** Compiled on first use, so that a schema costs nothing until a request needs it. */
export function defineValidator<S extends TSchema>(schema: S): Validator<Static<S>> {
  let compiled: ValidateFunction | null = null
  const problem = (value: unknown) => {
    compiled ??= openAjv().compile(schema)
    if (compiled(value)) return null
    return explain(compiled.errors ?? [])
  }
  return {
    schema,
    problem,
    parse(value) {
      const found = problem(value)
      if (found !== null)
        throw schemaErrors.invalid_field.with({ param: found.field || undefined }, found.field, found.text)
      return value as Static<S>
    },
  }
}

function explain(errors: readonly ErrorObject[]): { field: string; text: string } {
  // For a union, ajv reports the errors of the branches first and the union last.
  const last = errors.at(-1)
  if (last === undefined) return { field: '', text: 'is not valid' }
  if (last.keyword !== 'anyOf' && last.keyword !== 'oneOf') return explainOne(last)
  // A branch that fails by a limit instead of the type is the intended one.
  const meant = errors.find((error) => error.instancePath === last.instancePath && isBeyondType(error))
  const options = meant === undefined ? unionNames(last) : null
  if (options !== null) return { field: fieldOf(last), text: expectedText(options) }
  // Otherwise the branch with the deepest error.
  const deepest = errors.reduce((best, error) =>
    error.instancePath.length > best.instancePath.length ? error : best,
  )
  const isDeeper = deepest.instancePath.length > last.instancePath.length
  return explainOne(isDeeper ? deepest : (meant ?? deepest))
}

/** True if the type is valid and a limit is not, such as 0 for a minimum of 1. */
function isBeyondType(error: ErrorObject): boolean {
  return LIMITS.has(error.keyword)
}

const LIMITS = new Set([
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
  readonly const?: unknown
  readonly type?: string
}

/** Names of a union's members for a value that matches none; null if a member is an object or array that may be intended. */
function unionNames(error: ErrorObject): string[] | null {
  const schema = error.parentSchema as { anyOf?: UnionMember[]; oneOf?: UnionMember[] } | undefined
  const members = schema?.anyOf ?? schema?.oneOf ?? []
  const isObject = typeof error.data === 'object' && error.data !== null
  if (isObject && members.some((member) => member.type === 'object' || member.type === 'array')) return null
  // Null means absent and is no useful hint.
  const wanted = members.filter((member) => member.type !== 'null')
  const names = wanted.map((member) =>
    member.const === undefined ? member.type : JSON.stringify(member.const),
  )
  const known = names.filter((name) => name !== undefined)
  return known.length === names.length && known.length > 0 ? [...new Set(known)] : null
}

function expectedText(names: readonly string[]): string {
  const [only = ''] = names
  return names.length === 1 ? `must be ${withArticle(only)}` : `must be one of ${names.join(', ')}`
}

/** A type name with its article; any other text unchanged. */
function withArticle(name: string): string {
  if (name === 'string' || name === 'number' || name === 'boolean') return `a ${name}`
  return name === 'integer' || name === 'object' || name === 'array' ? `an ${name}` : name
}

function explainOne(error: ErrorObject): { field: string; text: string } {
  const field = fieldOf(error)
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'required':
      return { field: join(field, String(params.missingProperty)), text: 'is required' }
    case 'additionalProperties':
      return { field: join(field, String(params.additionalProperty)), text: 'is not known' }
    case 'enum': {
      const allowed = (params.allowedValues as unknown[]).map((value) => JSON.stringify(value))
      return { field, text: `must be one of ${allowed.join(', ')}` }
    }
    case 'const':
      return { field, text: `must be ${JSON.stringify(params.allowedValue)}` }
    case 'type':
      return { field, text: expectedText([params.type].flat().map(String)) }
    case 'minItems':
      return { field, text: countText('least', params.limit, 'items') }
    case 'maxItems':
      return { field, text: countText('most', params.limit, 'items') }
    case 'minLength':
      return { field, text: countText('least', params.limit, 'characters') }
    case 'maxLength':
      return { field, text: countText('most', params.limit, 'characters') }
    default:
      return { field, text: error.message ?? 'is not valid' }
  }
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
