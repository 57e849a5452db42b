/** Validation by schemas of untrusted authors, such as tool servers. */
import { createRequire } from 'node:module'
import type { ValidateFunction } from 'ajv'
import { explain, type FieldProblem } from './validate.ts'

const require = createRequire(import.meta.url)
/** Drafts before 2019-09, by their `$schema`. */
const OLD_DRAFT = /json-schema\.org\/draft-0[3-7]\//
/** Regular expressions of others can take exponential time, and comparing all items takes quadratic time. */
const UNCHECKED = ['pattern', 'patternProperties', 'unevaluatedProperties', 'uniqueItems', 'format']
const matchesAll = Object.assign(() => ({ test: () => true }), { code: '(() => ({ test: () => true }))' })

/**
 * Compiles a JSON Schema, of draft 2020-12 unless its `$schema` names an older one. Nothing outside of the schema is read.
 * Not checked: `pattern`, `patternProperties`, `format`, `uniqueItems`, `unevaluatedProperties`.
 *
 * @param schema not recursive and of limited size, because the time of a check grows with its branches
 * @returns a function that returns the first problem of a value, or null; null if ajv does not support the schema
 */
export function compileForeign(schema: object): ((value: unknown) => FieldProblem | null) | null {
  const isOld = '$schema' in schema && typeof schema.$schema === 'string' && OLD_DRAFT.test(schema.$schema)
  const { default: Ajv } = isOld
    ? (require('ajv') as typeof import('ajv'))
    : (require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js'))
  // Its own instance, because identifiers of different authors may be equal.
  const ajv = new Ajv({
    strict: false,
    verbose: true,
    meta: false,
    validateSchema: false,
    inlineRefs: false,
    ownProperties: true,
    logger: false,
    code: { optimize: false, regExp: matchesAll },
  })
  for (const keyword of UNCHECKED) ajv.removeKeyword(keyword)
  let validate: ValidateFunction
  try {
    validate = ajv.compile(schema)
  } catch {
    return null
  }
  return (value) => (validate(value) ? null : explain(validate.errors ?? []))
}
