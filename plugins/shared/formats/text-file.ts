/** Files of text, which need no worker that reads files. */

const TEXT_URL = /^data:(?:text\/[^;,]+|application\/(?:json|xml|yaml|x-yaml))((?:;[^;,]*)*),/i

/** @param data a data URL @returns null for a file of another kind */
export function textOfFile(data: string, filename?: string): string | null {
  const head = TEXT_URL.exec(data.slice(0, MAX_HEAD))
  if (head === null) return null
  const body = data.slice(head[0].length)
  const isBase64 = head[1].toLowerCase().endsWith(';base64')
  const text = isBase64 ? Buffer.from(body, 'base64').toString('utf8') : decoded(body)
  return filename === undefined ? text : `${filename}:\n${text}`
}

/** Longer than the head of any data URL in use. */
const MAX_HEAD = 256

/** Text that is not percent-encoded is taken as it is written. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
