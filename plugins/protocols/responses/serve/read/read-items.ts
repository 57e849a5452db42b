/** Completes the items of a request's input with ids and parts, and checks rules that the schema cannot express. */
import type { HistoryItem, JsonObject } from '#kernel'
import {
  type InputItem,
  type ItemOf,
  type ItemPart,
  NATIVE_ITEM_TYPES,
  newItemId,
  type TextPart,
  withoutPrivate,
} from '#shared'
import { missing, responsesErrors, wrongValue } from '../../errors.ts'
import type { CreateBody } from '../../wire.ts'

/** A reference stands for another item. */
export type WholeItem = HistoryItem | ItemOf<'item_reference'>
type Part = { readonly type: string; readonly [member: string]: unknown }

const NATIVE: ReadonlySet<string> = new Set(NATIVE_ITEM_TYPES)

/** Whether only workers that speak the format themselves can make sense of such items. */
export function isNativeType(type: string): boolean {
  return NATIVE.has(type)
}

/** @throws 400 naming the item */
export function readInputItems(input: CreateBody['input']): WholeItem[] {
  if (typeof input === 'string') {
    const content = [{ type: 'input_text', text: input }]
    return [{ id: newItemId('message'), type: 'message', role: 'user', content, status: 'completed' }]
  }
  const items = input.map((item, index) => toWholeItem(item, `input[${index}]`))
  refuseDoubles(items)
  return items
}

function refuseDoubles(items: readonly WholeItem[]): void {
  const seen = new Map<string, string>()
  for (const item of items) {
    if (item.type === 'item_reference') continue
    const body = JSON.stringify(item)
    const before = seen.get(item.id)
    if (before !== undefined && before !== body)
      throw responsesErrors.duplicate_item.with({ param: 'input' }, item.id)
    seen.set(item.id, body)
  }
}

function toWholeItem(item: InputItem, path: string): WholeItem {
  switch (item.type) {
    case 'item_reference':
      return { type: item.type, id: item.id }
    case 'message':
      return {
        ...stated(item),
        role: item.role,
        content: toContent(item, path),
        status: item.status ?? 'completed',
      }
    case 'reasoning':
      return {
        ...head(item),
        summary: toTextParts(item.summary ?? [], 'summary_text'),
        ...given('content', item.content && toTextParts(item.content, 'reasoning_text')),
        ...given('encrypted_content', item.encrypted_content),
        ...given('extra_content', item.extra_content),
      }
    case 'function_call':
    case 'custom_tool_call':
      return { ...stated(item), status: item.status ?? 'completed' }
    case 'custom_tool_call_output':
    case 'function_call_output':
      return {
        ...stated(item),
        output:
          typeof item.output === 'string' ? item.output : toParts(item.output, 'user', `${path}.output`),
        status: item.status ?? 'completed',
      }
    case 'compaction':
      return {
        ...head(item),
        encrypted_content: item.encrypted_content || missing(`${path}.encrypted_content`),
      }
    default: {
      const members = MEMBERS[item.type]
      return members === undefined
        ? { ...withoutPrivate(item as HistoryItem), ...head(item) }
        : { ...head(item), ...withDefaults(item, members) }
    }
  }
}

/**
 * Members of the items of tools, each with its value if it is absent; undefined omits it. Results of built-in calls are stored
 * by the gateway that ran them; the client's copy is kept unchanged.
 */
const MEMBERS: Readonly<Record<string, JsonObject | undefined>> = {
  mcp_list_tools: { server_label: '', tools: [] },
  mcp_call: {
    server_label: '',
    name: '',
    arguments: '',
    output: '',
    status: 'completed',
    error: undefined,
    approval_request_id: undefined,
  },
  mcp_approval_request: { server_label: '', name: '', arguments: '' },
  mcp_approval_response: { approval_request_id: '', approve: false, reason: undefined },
  web_search_call: { status: 'completed', action: undefined },
  code_interpreter_call: {
    status: 'completed',
    action: undefined,
    code: null,
    container_id: '',
    outputs: null,
  },
  file_search_call: { status: 'completed', action: undefined, queries: [], results: null },
}

function withDefaults(item: JsonObject, members: JsonObject): JsonObject {
  const all = Object.entries(members).map(([name, otherwise]) => [name, item[name] ?? otherwise] as const)
  return Object.fromEntries(all.filter(([, value]) => value !== undefined))
}

function head(item: { readonly id?: string | null; readonly type: string }): { id: string; type: string } {
  return { id: item.id ?? newItemId(item.type), type: item.type }
}

/** All members, with those that only a worker knows; absent for null. */
function stated(item: InputItem): HistoryItem {
  const members = Object.entries(withoutPrivate(item as HistoryItem)).filter(([, value]) => value !== null)
  return { ...Object.fromEntries(members), ...head(item) }
}

/** The member, unless it is absent or null. */
function given(name: string, value: unknown): object {
  return value === undefined || value === null ? {} : { [name]: value }
}

function toTextParts(parts: readonly TextPart[], type: string): readonly Part[] {
  return parts.map((part) => ({ type: part.type ?? type, text: part.text }))
}

/** A text stands for one part of the role's kind. Only an assistant's content may be empty. */
function toContent({ content, role }: ItemOf<'message'>, path: string): readonly Part[] {
  const at = `${path}.content`
  if (content.length === 0 && role !== 'assistant')
    throw responsesErrors.message_content_empty.with({ param: at }, at)
  if (typeof content !== 'string') return toParts(content, role, at)
  return [textPart(role === 'assistant' ? 'output_text' : 'input_text', content)]
}

function toParts(parts: readonly ItemPart[], role: string, path: string): readonly Part[] {
  return parts.map((part, index) => toPart(part, role, `${path}[${index}]`))
}

function toPart(part: ItemPart, role: string, path: string): Part {
  switch (part.type) {
    case 'text':
      return textPart(role === 'assistant' ? 'output_text' : 'input_text', part.text)
    case 'input_text':
      return textPart(part.type, part.text)
    case 'output_text':
      if (role === 'user') wrongValue(`${path}.type`, 'must not be output_text in a user message')
      return { ...textPart(part.type, part.text), annotations: part.annotations ?? [] }
    case 'refusal':
      return { type: part.type, refusal: part.refusal ?? '' }
    case 'input_image':
      return toImage(part, role, path)
    case 'input_file':
      return toFile(part, path)
    case 'input_audio': {
      const { data, format } = part.input_audio
      if (data === '') missing(`${path}.input_audio.data`)
      return { type: part.type, input_audio: { data, format } }
    }
    case 'input_video':
      return { type: part.type, video_url: part.video_url || missing(`${path}.video_url`) }
  }
}

function textPart(type: string, text: string): Part {
  return type === 'output_text' ? { type, text, annotations: [], logprobs: [] } : { type, text }
}

function toImage(part: Extract<ItemPart, { type: 'input_image' }>, role: string, path: string): Part {
  const { type, image_url: url, file_id: fileId, detail } = part
  if (role !== 'user') wrongValue(`${path}.type`, `must not be input_image in a message of role ${role}`)
  if (!url) refuseWithoutContent(fileId, path, 'image_url')
  if (!/^(https?:\/\/|data:)/i.test(url))
    wrongValue(`${path}.image_url`, 'must be an http, https or data URL')
  return { type, image_url: url, detail: detail ?? 'auto' }
}

function toFile(part: Extract<ItemPart, { type: 'input_file' }>, path: string): Part {
  const { type, file_data: data, file_url: url, file_id: fileId, filename } = part
  if ((data ?? null) === null && (url ?? null) === null) refuseWithoutContent(fileId, path, 'file_data')
  if ((data ?? null) === null)
    throw responsesErrors.unsupported_content_part.with({ param: `${path}.file_url` }, type)
  return { type, file_data: data, ...given('filename', filename) }
}

/** @throws unsupported_file_id, missing_required_parameter (400) */
function refuseWithoutContent(fileId: unknown, path: string, content: string): never {
  if ((fileId ?? null) !== null) throw responsesErrors.unsupported_file_id.with({ param: `${path}.file_id` })
  return missing(`${path}.${content}`)
}
