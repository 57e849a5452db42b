/** True for a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** JSON of a client, a worker or a store: nothing is known of its members. */
export type JsonObject = Readonly<Record<string, unknown>>
