/**
 * Opaque data of a vendor that belongs to a tool call or a turn, such as the thought signature of Gemini. Clients get it as the
 * member `extra_content` of the call or message, and send it back with it.
 */
import { isObject, type NativeObject } from '#kernel'
import { answerErrors } from '../answers/answer-errors.ts'

/** Longest data of one call or turn, in characters of JSON. */
const MAX_CHARACTERS = 65_536

/**
 * The member as a client sent it, to spread into the internal call or message; empty if there is none.
 *
 * @throws extra_content_too_long (400)
 */
export function extraContentOf(value: unknown): { readonly extra_content?: NativeObject } {
  if (!isObject(value)) return {}
  if (!isShortExtraContent(value))
    throw answerErrors.extra_content_too_long.with({ param: 'extra_content' }, MAX_CHARACTERS)
  return { extra_content: value }
}

/** Adds the data to the members of a call. */
export function withExtraContent(
  members: NativeObject | undefined,
  data: NativeObject | undefined,
): NativeObject | undefined {
  return data === undefined ? members : { ...members, extra_content: data }
}

/** False for data that the gateway does not carry. */
export function isShortExtraContent(value: NativeObject): boolean {
  return JSON.stringify(value).length <= MAX_CHARACTERS
}
