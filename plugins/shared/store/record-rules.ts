/** What a record may be called, whoever keeps it: rules that every store shares, so that records can move between them. */
import { JsonText } from '#kernel'
import { storeErrors } from './store-errors.ts'

/** Tenant and id together must fit into an index entry of any store. */
const MAX_PART_BYTES = 1_024
/** No text of fewer characters can be too long. */
const SURELY_SHORT = MAX_PART_BYTES / 4

/** Names that have been checked: they are written in code, so there are few. */
const knownNames = new Set<string>()
const MAX_KNOWN = 1_000

/** @throws invalid_collection_name for anything but up to 64 letters, digits and hyphens */
export function checkCollectionName(name: string): void {
  if (knownNames.has(name)) return
  if (!/^[A-Za-z0-9-]{1,64}$/.test(name)) throw storeErrors.invalid_collection_name(name.slice(0, 100))
  if (knownNames.size < MAX_KNOWN) knownNames.add(name)
}

/** @throws invalid_record_key (400) for a NUL, more than 1,024 bytes, and text that is not well-formed Unicode */
export function checkKeyPart(part: 'tenant' | 'id', text: string): string {
  // Lone surrogates would all be written as the same replacement character.
  const isKey =
    !text.includes('\u0000') &&
    text.isWellFormed() &&
    (text.length <= SURELY_SHORT || Buffer.byteLength(text) <= MAX_PART_BYTES)
  if (!isKey) throw storeErrors.invalid_record_key(part)
  return text
}

/**
 * The JSON of a record.
 * @param maxChars longest text
 * @throws TypeError for what is no JSON value, record_too_large (413)
 */
export function toRecordJson(value: unknown, maxChars: number): string {
  const json = value instanceof JsonText ? value.text : JSON.stringify(value)
  if (json === undefined) throw new TypeError('a record is a JSON value')
  if (json.length > maxChars) throw storeErrors.record_too_large(json.length, maxChars)
  return json
}
