/** About how long the JSON of a value is, without writing it. */

const DEPTH_LIMIT = 64
const PUNCTUATION = 4
const SCALAR = 5

export function approximateBytes(value: unknown, depth = 0): number {
  if (typeof value === 'string') return value.length + PUNCTUATION
  if (typeof value !== 'object' || value === null || depth > DEPTH_LIMIT) return SCALAR
  let bytes = PUNCTUATION
  if (Array.isArray(value)) {
    for (const item of value) bytes += approximateBytes(item, depth + 1)
    return bytes
  }
  for (const key of Object.keys(value)) {
    bytes += key.length + PUNCTUATION + approximateBytes((value as Record<string, unknown>)[key], depth + 1)
  }
  return bytes
}
