/** Metadata of conversations: up to 16 short texts, replaced whole or merged key by key. @source OpenAI API reference, Responses */
import { conversationErrors } from './errors.ts'

export type Metadata = Readonly<Record<string, string>>

const MAX_KEYS = 16
const MAX_KEY_CHARS = 64
const MAX_VALUE_CHARS = 512
const PARAM = { param: 'metadata' }

/** @param value null counts as absent @throws invalid_metadata */
export function readMetadata(value: unknown): Metadata {
  return mergeMetadata({}, readChanges(value))
}

/** What a merge asks for; null removes a key. @throws invalid_metadata */
export function readChanges(value: unknown): ReadonlyMap<string, string | null> {
  if (value === undefined || value === null) return new Map()
  if (typeof value !== 'object' || Array.isArray(value)) throw problem('must be an object')
  const changes = new Map<string, string | null>()
  for (const [key, text] of Object.entries(value)) {
    if (key.length > MAX_KEY_CHARS) throw problem(`keys have at most ${MAX_KEY_CHARS} characters`)
    if (text !== null && typeof text !== 'string') throw problem('values must be strings')
    if (text !== null && text.length > MAX_VALUE_CHARS)
      throw problem(`values have at most ${MAX_VALUE_CHARS} characters`)
    changes.set(key, text)
  }
  return changes
}

/** @throws invalid_metadata when too much is left */
export function mergeMetadata(before: Metadata, changes: ReadonlyMap<string, string | null>): Metadata {
  const merged = new Map(Object.entries(before))
  for (const [key, text] of changes) {
    if (text === null) merged.delete(key)
    else merged.set(key, text)
  }
  if (merged.size > MAX_KEYS) throw problem(`cannot have more than ${MAX_KEYS} properties`)
  // Members of its own, whatever a client calls them.
  return Object.fromEntries(merged)
}

function problem(text: string) {
  return conversationErrors.invalid_metadata.with(PARAM, text)
}
