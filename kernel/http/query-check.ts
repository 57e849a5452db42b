/** Checks the query of a request against the parameters that its route documents. */
import type { TSchema } from 'typebox'
import type { RouteDocs } from '../contracts/route.ts'
import { defineValidator, type Validator } from '../schema/validate.ts'
import { queryError } from './http-errors.ts'

/** @throws invalid_query (400) for the first parameter that is unknown, repeated or has a wrong value */
export type QueryCheck = (query: string) => void

const MAX_SHOWN = 80
const INTEGER = /^-?\d{1,15}$/
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/**
 * Lists may be repeated, have brackets behind their name, or be joined by commas.
 * @param parameters of the route's documentation
 * @returns null for a route that documents none: it does not read its query
 */
export function queryCheck(parameters: RouteDocs['query']): QueryCheck | null {
  if (parameters === undefined) return null
  const validators = new Map<string, Validator<unknown>>()
  for (const [name, schema] of Object.entries(parameters)) validators.set(name, defineValidator(schema))
  return (query) => {
    const seen = new Set<string>()
    for (const [given, text] of new URLSearchParams(query)) {
      const name = given.endsWith('[]') ? given.slice(0, -2) : given
      const validator = validators.get(name)
      if (validator === undefined || (given !== name && !hasType(validator.schema, 'array')))
        throw queryError(
          given.slice(0, MAX_SHOWN),
          `is unknown; known are ${[...validators.keys()].join(', ')}`,
        )
      if (seen.has(name) && !hasType(validator.schema, 'array')) throw queryError(name, 'is given twice')
      seen.add(name)
      const problem = validator.problem(toValue(text, validator.schema))
      if (problem !== null)
        throw queryError(name, `${problem.text} (got ${JSON.stringify(text.slice(0, MAX_SHOWN))})`)
    }
  }
}

/** A text without the form of the schema's type stays a text, which the schema rejects. */
function toValue(text: string, schema: TSchema): unknown {
  if (hasType(schema, 'integer')) return INTEGER.test(text) ? Number(text) : text
  if (hasType(schema, 'boolean')) return BOOLEANS.get(text) ?? text
  return hasType(schema, 'array') ? text.split(',') : text
}

/** Also for a union with null. */
function hasType(schema: TSchema, type: string): boolean {
  const { type: own, anyOf = [] } = schema as { readonly type?: unknown; readonly anyOf?: readonly TSchema[] }
  return own === type || anyOf.some((one) => hasType(one, type))
}
