/** @hot Flat header lists: [name, value, …] with names in lower case. */

/** First value of a name. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1]
  return undefined
}

/** Removes every header of a name. @param from index in the list from which on it removes */
export function removeHeader(headers: string[], name: string, from = 0): void {
  for (let i = headers.length - 2; i >= from; i -= 2) if (headers[i] === name) headers.splice(i, 2)
}
