/** Edits the texts within a value of a format that the gateway does not know in full: a source, or the output of a tool. */
import { isObject } from '#kernel'

/** Members whose texts nobody reads: kinds, ids, and data that a vendor must get back unchanged. */
const OPAQUE = /^(type|status|role|id|.*_id|encrypted_.*|signature|data|extra_content)$/

/**
 * @param edit called for each text, in order, before the results of earlier calls are known
 * @returns the value itself if nothing changed; a promise if `edit` returned one
 */
export function editTexts<Value>(
  value: Value,
  edit: (text: string) => string | Promise<string>,
): Value | Promise<Value> {
  const before: string[] = []
  mapTexts(value, (text) => {
    before.push(text)
    return text
  })
  const edited = before.map(edit)
  return edited.some((one) => one instanceof Promise)
    ? Promise.all(edited).then((after) => withTexts(value, before, after))
    : withTexts(value, before, edited as string[])
}

function withTexts<Value>(value: Value, before: readonly string[], after: readonly string[]): Value {
  if (after.every((text, at) => text === before[at])) return value
  let at = 0
  return mapTexts(value, () => after[at++]) as Value
}

/** @returns a copy with each text that is not empty replaced */
function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return value === '' ? '' : map(value)
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, map))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, OPAQUE.test(name) ? one : mapTexts(one, map)]),
  )
}
