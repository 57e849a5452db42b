/** Decodes single strings of a JSON text, where bytes alone do not tell what they say. */

/**
 * @param from position of the opening quote
 * @param after position behind the closing one
 * @returns null when it is no JSON string: a bad escape, or a control character
 */
export function textOf(body: Buffer, from: number, after: number): string | null {
  try {
    return JSON.parse(body.toString('utf8', from, after)) as string
  } catch {
    return null
  }
}
