/** JSON of clients, workers and the store. */
export type Json = Readonly<Record<string, unknown>>

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
