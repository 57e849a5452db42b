/** Checks the arguments of a call by the tool's schema, so that a model learns which one is wrong from any server. */
import { compileForeign, type FieldProblem, isObject, parseBoundedText } from '#kernel'
import type { Schema } from './schema-references.ts'
import { checkableParts } from './tool-schema.ts'

interface Checker {
  readonly parts: number
  readonly check: (value: unknown) => FieldProblem | null
}

/** Compiled at the first call of a tool; null for schemas that the server alone checks. */
const checkers = new WeakMap<Schema, Checker | null>()

/** A schema with more parts or characters would take too long to compile. */
const MAX_PARTS = 500
const MAX_CHARACTERS = 16_384
/** Parts of the schema times characters of the arguments: a longer check would delay other requests. */
const MAX_WORK = 20_000_000

/**
 * @param input parsed from `text`
 * @returns null if nothing is wrong, or if the check could take too long; the server checks its arguments too
 */
export function checkArguments(schema: Schema, input: object, text: string): FieldProblem | null {
  let checker = checkers.get(schema)
  if (checker === undefined) {
    checker = open(schema)
    checkers.set(schema, checker)
  }
  return checker === null || checker.parts * text.length > MAX_WORK ? null : checker.check(input)
}

function open(schema: Schema): Checker | null {
  const parts = checkableParts(schema)
  if (parts === null || parts > MAX_PARTS || JSON.stringify(schema).length > MAX_CHARACTERS) return null
  const check = compileForeign(schema)
  return check === null ? null : { parts, check }
}

/** An empty text is an empty object. @returns what is wrong with a text that is not a JSON object */
export function parseArguments(text: string): Record<string, unknown> | string {
  try {
    const value: unknown = text.trim() === '' ? {} : parseBoundedText(text)
    return isObject(value) ? value : 'must be a JSON object'
  } catch (error) {
    return `are not valid JSON (${(error as Error).message})`
  }
}

export function describeProblem({ field, text }: FieldProblem): string {
  return `${field === '' ? 'the arguments' : `'${field}'`} ${text}`.slice(0, MAX_PROBLEM)
}

/** Schemas may list many allowed values. */
const MAX_PROBLEM = 1_000
