/** Items and parts that only workers of the format can read: for others there is no translation. */
import { type GatewayError, type HistoryItem, isObject } from '#kernel'
import { responsesErrors } from '../../errors.ts'
import { contentOf, isTranslated } from './content-parts.ts'

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
  if (type === 'message') return foreignParts(item.content, [path, 'content'], item.role === 'assistant')
  return type.endsWith('_call_output') ? foreignParts(item.output, [path, 'output'], false) : []
}

/** @param isSaid by the model */
function foreignParts(
  parts: unknown,
  [path, member]: readonly [path: string, member: string],
  isSaid: boolean,
): Foreign[] {
  if (!Array.isArray(parts)) return []
  return parts.flatMap((part, index) => {
    if (!isObject(part)) return []
    const content = contentOf(part.type, isSaid)
    if (content !== null && isTranslated(part)) return []
    const at = `${path}.${member}[${index}]`
    const type = String(part.type)
    if (content === null) {
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
