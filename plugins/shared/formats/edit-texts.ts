/** Edits the texts within a value of a format that the gateway does not know in full: a source, or the output of a tool. */
import { isObject } from '#kernel'

/** Members of items that are not edited: kinds, ids, and data that goes back to the vendor unchanged. */
const OPAQUE: ReadonlySet<string> = new Set([
  'type',
  'status',
  'role',
  'id',
  'call_id',
  'tool_use_id',
  'item_id',
  'file_id',
  'container_id',
  'approval_request_id',
  'encrypted_content',
  'encrypted_index',
  'signature',
  'extra_content',
])

type Edit = (text: string) => string | Promise<string>
type Visit = (value: unknown, map: (text: string) => string) => unknown

/**
 * Edits every text of a value whose members somebody else names, such as the structured output of a tool.
 * @param edit called for each text, in order, before the results of earlier calls are known
 * @returns the value itself if nothing changed; a promise if `edit` returned one
 */
export function editTexts<Value>(value: Value, edit: Edit): Value | Promise<Value> {
  return editBy((one, map) => mapTexts(one, map), value, edit)
}

/** As `editTexts`, for an item or a source in a vendor's format, whose ids and opaque data stay. */
export function editItemTexts<Value>(value: Value, edit: Edit): Value | Promise<Value> {
  return editBy(mapItemTexts, value, edit)
}

function editBy<Value>(visit: Visit, value: Value, edit: Edit): Value | Promise<Value> {
  const before: string[] = []
  visit(value, (text) => {
    before.push(text)
    return text
  })
  const edited = before.map(edit)
  return edited.some((one) => one instanceof Promise)
    ? Promise.all(edited).then((after) => withTexts(visit, value, before, after))
    : withTexts(visit, value, before, edited as string[])
}

function withTexts<Value>(
  visit: Visit,
  value: Value,
  before: readonly string[],
  after: readonly string[],
): Value {
  if (after.every((text, at) => text === before[at])) return value
  let at = 0
  return visit(value, () => after[at++]) as Value
}

/** @returns a copy with each text that is not empty replaced */
function mapTexts(
  value: unknown,
  map: (text: string) => string,
  isKept: (name: string, owner: Readonly<Record<string, unknown>>) => boolean = () => false,
): unknown {
  if (typeof value === 'string') return value === '' ? '' : map(value)
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, map, isKept))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      isKept(name, value) ? one : mapTexts(one, map, isKept),
    ]),
  )
}

function mapItemTexts(value: unknown, map: (text: string) => string): unknown {
  // Bytes of an image or a file.
  return mapTexts(
    value,
    map,
    (name, owner) => OPAQUE.has(name) || (name === 'data' && ('media_type' in owner || 'mimeType' in owner)),
  )
}
