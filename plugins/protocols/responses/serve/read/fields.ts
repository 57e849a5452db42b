/** Reads single fields of a client's JSON: null counts as absent, and what is wrong names the path. */
import { responsesErrors, shown } from '../../errors.ts'

export type Json = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @throws invalid_type (400) */
export function wrongType(path: string, expected: string): never {
  throw responsesErrors.invalid_type.with({ param: path }, path, expected)
}

/** @throws invalid_value (400) */
export function wrongValue(path: string, problem: string): never {
  throw responsesErrors.invalid_value.with({ param: path }, path, problem)
}

/** @throws missing_required_parameter (400) */
export function missing(path: string): never {
  throw responsesErrors.missing_required_parameter.with({ param: path }, path)
}

/** An own member: what prototypes have is nobody's field. */
export function fieldOf(owner: Json, name: string): unknown {
  return Object.hasOwn(owner, name) ? (owner[name] ?? undefined) : undefined
}

/** @param maxLength in characters */
export function readString(
  owner: Json,
  name: string,
  path: string,
  maxLength = Number.POSITIVE_INFINITY,
): string | undefined {
  const value = fieldOf(owner, name)
  if (value === undefined) return undefined
  if (typeof value !== 'string') wrongType(path, 'a string')
  if (value.length > maxLength) wrongValue(path, `must have at most ${maxLength} characters`)
  return value
}

/** Neither absent nor empty. */
export function requireString(owner: Json, name: string, path: string, maxLength?: number): string {
  const value = readString(owner, name, path, maxLength)
  if (value === undefined || value === '') missing(path)
  return value
}

export function readBoolean(owner: Json, name: string, path: string): boolean | undefined {
  const value = fieldOf(owner, name)
  if (value === undefined || typeof value === 'boolean') return value
  return wrongType(path, 'a boolean')
}

export interface NumberLimits {
  readonly min: number
  readonly max: number
  readonly isInteger?: boolean
  /** `min` itself is too little. */
  readonly isAbove?: boolean
}

export function readNumber(
  owner: Json,
  name: string,
  path: string,
  { min, max, isInteger = false, isAbove = false }: NumberLimits,
): number | undefined {
  const value = fieldOf(owner, name)
  if (value === undefined) return undefined
  if (typeof value !== 'number') wrongType(path, isInteger ? 'an integer' : 'a number')
  if (isInteger && !Number.isInteger(value)) wrongType(path, 'an integer')
  if (value < min || value > max || (isAbove && value === min)) {
    const least = isAbove ? `more than ${min}` : `at least ${min}`
    wrongValue(
      path,
      max === Number.POSITIVE_INFINITY ? `must be ${least}` : `must be ${least} and at most ${max}`,
    )
  }
  return value
}

export function readChoice<const Names extends readonly string[]>(
  owner: Json,
  name: string,
  path: string,
  names: Names,
): Names[number] | undefined {
  const value = readString(owner, name, path)
  if (value === undefined || names.includes(value)) return value
  return wrongValue(path, `must be one of ${names.join(', ')}, not '${shown(value)}'`)
}

export function readObject(owner: Json, name: string, path: string): Json | undefined {
  const value = fieldOf(owner, name)
  if (value === undefined || isObject(value)) return value
  return wrongType(path, 'an object')
}

export function readArray(owner: Json, name: string, path: string): readonly unknown[] | undefined {
  const value = fieldOf(owner, name)
  if (value === undefined || Array.isArray(value)) return value
  return wrongType(path, 'an array')
}

export function readStrings(
  owner: Json,
  name: string,
  path: string,
  maxItems: number,
): readonly string[] | undefined {
  const list = readArray(owner, name, path)
  if (list === undefined) return undefined
  if (list.length > maxItems) wrongValue(path, `must have at most ${maxItems} items`)
  for (const [index, value] of list.entries())
    if (typeof value !== 'string') wrongType(`${path}[${index}]`, 'a string')
  return list as readonly string[]
}
