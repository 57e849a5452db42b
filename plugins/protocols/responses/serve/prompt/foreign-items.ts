/** Items and parts that only workers of the format can read: for others there is no translation. */
import { type GatewayError, type HistoryItem, isObject, type JsonObject } from '#kernel'
import { responsesErrors } from '../../errors.ts'

/** Types of items that `toMessages` translates, and of those that the gateway or a service has finished before. */
const TRANSLATED: ReadonlySet<string> = new Set([
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'tool_search_call',
  'tool_search_output',
  'additional_tools',
  'compaction',
  'compaction_trigger',
  'mcp_list_tools',
  'mcp_call',
  'mcp_approval_request',
  'mcp_approval_response',
  'web_search_call',
  'code_interpreter_call',
  'file_search_call',
  'image_generation_call',
])

/** Whether workers of other formats get the item, or its effect. */
export function isTranslatedType(type: string): boolean {
  return TRANSLATED.has(type)
}

/** By type of a part: the members of which it needs one to be translated. */
const PART_CONTENT: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['input_text', ['text']],
  ['output_text', ['text']],
  ['refusal', ['refusal']],
  ['input_image', ['image_url']],
  ['input_file', ['file_data', 'file_url']],
  ['input_audio', ['input_audio']],
  ['input_video', ['video_url']],
])

/** Parts of what the model said: other formats have no files and images there. */
const SAID: typeof PART_CONTENT = new Map(
  [...PART_CONTENT].filter(([, [member]]) => member === 'text' || member === 'refusal'),
)

/** Something of an item that workers of other formats cannot get. */
export interface Foreign {
  /** Without indexes, as `x-weir-warning` names it. */
  readonly name: string
  readonly error: GatewayError
}

/** @param path of the item */
export function foreignIn(item: HistoryItem, path: string): Foreign[] {
  const { type } = item
  if (type.startsWith('_')) return []
  if (!isTranslatedType(type)) {
    const error = responsesErrors.unsupported_item_type.with({ param: `${path}.type` }, type)
    return [{ name: `input.${type}`, error }]
  }
  if (type === 'message')
    return foreignParts(item.content, [path, 'content'], item.role === 'assistant' ? SAID : PART_CONTENT)
  return type.endsWith('_call_output') ? foreignParts(item.output, [path, 'output'], PART_CONTENT) : []
}

/** Whether the part has what its translation needs. */
export function isTranslated(part: JsonObject): boolean {
  const content = PART_CONTENT.get(part.type)
  return content?.some((name) => part[name] != null) === true
}

/** @param translated types of parts with their members */
function foreignParts(
  parts: unknown,
  [path, member]: readonly [path: string, member: string],
  translated: typeof PART_CONTENT,
): Foreign[] {
  if (!Array.isArray(parts)) return []
  return parts.flatMap((part, index) => {
    if (!isObject(part)) return []
    const content = translated.get(part.type)
    if (content !== undefined && isTranslated(part)) return []
    const at = `${path}.${member}[${index}]`
    const type = String(part.type)
    if (content === undefined) {
      const error = responsesErrors.unsupported_content_part.with({ param: `${at}.type` }, type)
      return { name: `input.${member}.${type}`, error }
    }
    if (part.file_id != null) {
      const error = responsesErrors.unsupported_file_id.with({ param: `${at}.file_id` })
      return { name: `input.${member}.file_id`, error }
    }
    const param = `${at}.${content[0]}`
    const error = responsesErrors.missing_required_parameter.with({ param }, param)
    return { name: `input.${member}.${content[0]}`, error }
  })
}
