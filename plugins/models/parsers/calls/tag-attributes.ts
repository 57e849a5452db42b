/** Reads the head of a tag: its name and its attributes. */

/** Only from the beginning of a word: a long word without a value would be tried from each of its letters. */
const ATTRIBUTE = /(?<![\w-])([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g

/** First word of a head; space before it is allowed. */
export function tagName(head: string): string {
  return /^\s*([\w-]*)/.exec(head)?.[1] ?? ''
}

/**
 * Value of an attribute in either kind of quotes, with entities decoded; null if it is missing. Text in the value of another
 * attribute is not an attribute.
 */
export function attribute(head: string, name: string): string | null {
  for (const [, key, double, single] of head.matchAll(ATTRIBUTE)) {
    if (key === name) return decodeEntities(double ?? single ?? '')
  }
  return null
}

/** The five entities of XML. */
export const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&amp;', '&'],
  ['&quot;', '"'],
  ['&apos;', "'"],
])

/** Decodes each entity once. */
function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replaceAll(/&(?:lt|gt|amp|quot|apos);/g, (entity) => ENTITIES.get(entity) ?? entity)
}
