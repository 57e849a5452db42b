/** What formats with tool calls share: names within the limits of services, arguments, and opaque data of a vendor. */
import { createHash } from 'node:crypto'
import { isObject, type NativeObject, parseBoundedText } from '#kernel'
import { answerErrors } from '../answers/answer-errors.ts'

/** Longest name that every service accepts. */
export const MAX_TOOL_NAME = 64
const DIGEST_CHARACTERS = 8

/** @param whole text that the digest is of */
export function withDigest(text: string, whole: string, most: number): string {
  const digest = createHash('sha256').update(whole).digest('hex').slice(0, DIGEST_CHARACTERS)
  return `${text.slice(0, most - DIGEST_CHARACTERS - 1)}_${digest}`
}

/** Name of a namespace's function for workers that know no namespaces: the same each time, so that none has to be kept. */
export function memberName(namespace: string, name: string): string {
  const text = `${namespace}__${name}`
  return text.length <= MAX_TOOL_NAME ? text : withDigest(text, text, MAX_TOOL_NAME)
}

/** JSON that models and workers write. @returns undefined for text that is not JSON, or is nested too deeply */
export function tryParseJson(text: string): unknown {
  try {
    return parseBoundedText(text)
  } catch {
    return undefined
  }
}

/** Arguments of a tool call. @returns an empty object for text that is no JSON object: models make mistakes */
export function parseCallArguments(text: string): Record<string, unknown> {
  const value = tryParseJson(text)
  return isObject(value) ? value : {}
}

/**
 * Longest opaque data of a vendor that belongs to a tool call or a turn, such as the thought signature of Gemini, in characters
 * of JSON. Clients get it as the member `extra_content` of the call or message, and send it back with it.
 */
const MAX_EXTRA_CONTENT = 65_536

/**
 * The member as a client sent it, to spread into the internal call or message; empty if there is none.
 *
 * @throws extra_content_too_long (400)
 */
export function extraContentOf(value: unknown): { readonly extra_content?: NativeObject } {
  if (!isObject(value)) return {}
  if (!isShortExtraContent(value))
    throw answerErrors.extra_content_too_long.with({ param: 'extra_content' }, MAX_EXTRA_CONTENT)
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
  return JSON.stringify(value).length <= MAX_EXTRA_CONTENT
}
