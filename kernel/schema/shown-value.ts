/** Shows the wrong value of a field in an error: in short, without credentials and without the contents of objects. */
import type { ErrorObject } from 'ajv'

/** Characters of a text. */
const MAX_SHOWN = 80
/** Names of fields and headers that hold credentials; `max_tokens` and the like are none. */
const CREDENTIAL = /authorization|cookie|key$|token$|secret|passw|credential/i
/** The names and values of these are free. */
const FREE = /^(?:headers|env)$/i
/** What a URL may have of a credential: the user, and the query. */
const USER = /\/\/[^/@\s]*@/g
const QUERY = /\?.*/s

/** @returns null if there is none, or if it may be a credential */
export function shownValue({ data, keyword, instancePath, parentSchema }: ErrorObject): string | null {
  const isSecret = (parentSchema as { secret?: boolean } | undefined)?.secret === true
  const names = instancePath.split('/')
  if (isSecret || names.some((name) => CREDENTIAL.test(name) || FREE.test(name))) return null
  return keyword === 'maxLength' || keyword === 'minLength'
    ? `${(data as string).length} characters`
    : shortValue(data)
}

/** @returns null for undefined */
export function shortValue(value: unknown): string | null {
  if (value === undefined) return null
  if (Array.isArray(value)) return `an array of ${value.length} items`
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return String(value)
  const text = value.includes('://') ? value.replace(USER, '//…@').replace(QUERY, '?…') : value
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)
}
