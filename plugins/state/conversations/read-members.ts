/** Members of a client's JSON that must be there: null counts as absent, and what is wrong names the path. */
import { conversationErrors } from './errors.ts'

export type Json = Readonly<Record<string, unknown>>

/** @throws invalid_type */
export function asObject(value: unknown, path: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw conversationErrors.invalid_type.with({ param: path }, path, 'an object')
  }
  return value as Json
}

/** @throws missing_required_parameter, invalid_type */
export function needText(owner: Json, path: string, member: string): string {
  const value = needMember(owner, path, member)
  const param = `${path}.${member}`
  if (typeof value !== 'string') throw conversationErrors.invalid_type.with({ param }, param, 'a string')
  return value
}

/** @throws missing_required_parameter, invalid_type */
export function needList(owner: Json, path: string, member: string): readonly unknown[] {
  const value = needMember(owner, path, member)
  const param = `${path}.${member}`
  if (!Array.isArray(value)) throw conversationErrors.invalid_type.with({ param }, param, 'an array')
  return value
}

/** @throws missing_required_parameter */
export function needMember(owner: Json, path: string, member: string): unknown {
  const value = owner[member]
  const param = `${path}.${member}`
  if (value !== undefined && value !== null) return value
  throw conversationErrors.missing_required_parameter.with({ param }, param)
}
