/** Validation with ajv: a TypeBox schema becomes a function that says which field is wrong. The only user of ajv. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { Static, TSchema } from 'typebox'
import { defineErrors } from '../errors/define-errors.ts'

export const schemaErrors = defineErrors('schema', {
  invalid_field: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string, problem: string) => `${field === '' ? 'the body' : `field '${field}'`} ${problem}`,
  },
})

/** Checks values of one schema. */
export interface Validator<T> {
  readonly schema: TSchema
  /** @throws invalid_field (400) naming the first wrong field. Defaults of the schema are filled in place. */
  parse(value: unknown): T
  /** The first problem, or null. Field as a dotted path, empty for the value itself. */
  problem(value: unknown): { field: string; text: string } | null
}

const ajv = new Ajv({
  useDefaults: true,
  allErrors: false,
  strict: false,
  allowUnionTypes: true,
  verbose: true,
})

/** Compiled on first use, so that a schema costs nothing until a request needs it. */
export function defineValidator<S extends TSchema>(schema: S): Validator<Static<S>> {
  let compiled: ValidateFunction | null = null
  const problem = (value: unknown) => {
    compiled ??= ajv.compile(schema)
    if (compiled(value)) return null
    return explain(compiled.errors?.[0])
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

function explain(error: ErrorObject | undefined): { field: string; text: string } {
  if (error === undefined) return { field: '', text: 'is not valid' }
  const base = error.instancePath.slice(1).split('/').filter(Boolean).map(unescapePointer).join('.')
  const params = error.params as Record<string, unknown>
  if (error.keyword === 'required')
    return { field: join(base, String(params.missingProperty)), text: 'is required' }
  if (error.keyword === 'additionalProperties') {
    return { field: join(base, String(params.additionalProperty)), text: 'is not known' }
  }
  if (error.keyword === 'enum') {
    const allowed = (params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(', ')
    return { field: base, text: `must be one of ${allowed}` }
  }
  if (error.keyword === 'const')
    return { field: base, text: `must be ${JSON.stringify(params.allowedValue)}` }
  if (error.keyword === 'anyOf' || error.keyword === 'oneOf') {
    const options =
      (error.parentSchema as { anyOf?: { const?: unknown; type?: string }[] } | undefined)?.anyOf ?? []
    const names = options.map((option) =>
      option.const === undefined ? option.type : JSON.stringify(option.const),
    )
    if (names.length > 0 && names.every((name) => name !== undefined)) {
      return { field: base, text: `must be one of ${names.join(', ')}` }
    }
  }
  return { field: base, text: error.message ?? 'is not valid' }
}

function join(base: string, key: string): string {
  return base === '' ? key : `${base}.${key}`
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
