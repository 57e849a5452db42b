/** Items of a request's input: checked, and made whole with an id, a type and parts. @source OpenAI API reference, Responses */
import type { HistoryItem } from '#kernel'
import { responsesErrors, shown } from '../../errors.ts'
import { newItemId } from '../item-ids.ts'
import {
  fieldOf,
  isObject,
  type Json,
  missing,
  readArray,
  readBoolean,
  readObject,
  readString,
  requireString,
  wrongType,
  wrongValue,
} from './fields.ts'
import { readContent, readOutputContent } from './read-content.ts'

const ID = /^[A-Za-z0-9_-]{1,128}$/
const MAX_CALL_ID = 64
const MAX_ITEMS = 100_000
const ROLES = new Set(['user', 'assistant', 'system', 'developer'])

/** Known kinds that only workers that speak the format themselves can make sense of. */
export const FOREIGN: ReadonlySet<string> = new Set([
  'custom_tool_call',
  'custom_tool_call_output',
  'computer_call',
  'computer_call_output',
  'local_shell_call',
  'local_shell_call_output',
  'shell_call',
  'shell_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
  'image_generation_call',
])

/** An item that is meant to stand where another one is named. */
export interface ItemReference {
  readonly type: 'item_reference'
  readonly id: string
}

export type InputItem = HistoryItem | ItemReference

/** @throws 400 naming the item */
export function readInputItems(input: string | readonly unknown[]): InputItem[] {
  if (typeof input === 'string') {
    const content = [{ type: 'input_text', text: input }]
    return [{ id: newItemId('message'), type: 'message', role: 'user', content, status: 'completed' }]
  }
  if (input.length > MAX_ITEMS) wrongValue('input', `must have at most ${MAX_ITEMS} items`)
  const items = input.map((item, index) => readItem(item, `input[${index}]`))
  refuseDoubles(items)
  return items
}

function refuseDoubles(items: readonly InputItem[]): void {
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

function readItem(item: unknown, path: string): InputItem {
  if (!isObject(item)) wrongType(path, 'an object')
  const type = readString(item, 'type', `${path}.type`) ?? typeOf(item, path)
  switch (type) {
    case 'item_reference':
      return { type, id: requireString(item, 'id', `${path}.id`) }
    case 'message':
      return readMessage(item, path)
    case 'reasoning':
      return readReasoning(item, path)
    case 'function_call':
      return {
        ...head(item, type, path),
        call_id: requireString(item, 'call_id', `${path}.call_id`, MAX_CALL_ID),
        name: requireString(item, 'name', `${path}.name`),
        arguments: readString(item, 'arguments', `${path}.arguments`) ?? missing(`${path}.arguments`),
        status: statusOf(item, path),
      }
    case 'function_call_output':
      return {
        ...head(item, type, path),
        call_id: requireString(item, 'call_id', `${path}.call_id`, MAX_CALL_ID),
        output: readOutputContent(fieldOf(item, 'output'), `${path}.output`),
        status: statusOf(item, path),
      }
    case 'mcp_list_tools':
      return {
        ...head(item, type, path),
        server_label: requireString(item, 'server_label', `${path}.server_label`),
        tools: readArray(item, 'tools', `${path}.tools`) ?? [],
      }
    case 'mcp_call':
      return readMcpCall(item, path)
    case 'mcp_approval_request':
      return {
        ...head(item, type, path),
        server_label: requireString(item, 'server_label', `${path}.server_label`),
        name: requireString(item, 'name', `${path}.name`),
        arguments: readString(item, 'arguments', `${path}.arguments`) ?? '',
      }
    case 'mcp_approval_response':
      return readApproval(item, path)
    case 'web_search_call':
    case 'code_interpreter_call':
    case 'file_search_call':
      return readBuiltInCall(item, type, path)
    case 'compaction':
      return {
        ...head(item, type, path),
        encrypted_content: requireString(item, 'encrypted_content', `${path}.encrypted_content`),
      }
    default:
      if (FOREIGN.has(type)) return { ...withoutOwn(item), ...head(item, type, path) }
      throw responsesErrors.unknown_input_type.with(
        { param: `${path}.type`, code: 'json_parse_error' },
        `${path}.type`,
        shown(type),
      )
  }
}

/** Members that begin so are the gateway's. */
function withoutOwn(item: Json): Json {
  return Object.fromEntries(Object.entries(item).filter(([name]) => !name.startsWith('_')))
}

/** Of an item that does not say: a message has a role, anything else with an id is a reference. */
function typeOf(item: Json, path: string): string {
  if (fieldOf(item, 'role') !== undefined) return 'message'
  return fieldOf(item, 'id') !== undefined ? 'item_reference' : missing(`${path}.type`)
}

function head(item: Json, type: string, path: string): { id: string; type: string } {
  const id = readString(item, 'id', `${path}.id`) ?? newItemId(type)
  if (!ID.test(id)) wrongValue(`${path}.id`, 'must be letters, digits, hyphens and underscores, at most 128')
  return { id, type }
}

function statusOf(item: Json, path: string): string {
  return readString(item, 'status', `${path}.status`) ?? 'completed'
}

function readMessage(item: Json, path: string): HistoryItem {
  const role = requireString(item, 'role', `${path}.role`)
  if (!ROLES.has(role))
    wrongValue(`${path}.role`, `must be user, assistant, system or developer, not '${shown(role)}'`)
  const phase = readString(item, 'phase', `${path}.phase`)
  return {
    ...head(item, 'message', path),
    role,
    content: readContent(fieldOf(item, 'content'), role, `${path}.content`),
    status: statusOf(item, path),
    ...(phase !== undefined && { phase }),
  }
}

function readReasoning(item: Json, path: string): HistoryItem {
  const content = readTexts(item, 'content', 'reasoning_text', path)
  const sealed = readString(item, 'encrypted_content', `${path}.encrypted_content`)
  return {
    ...head(item, 'reasoning', path),
    summary: readTexts(item, 'summary', 'summary_text', path) ?? [],
    ...(content !== undefined && { content }),
    ...(sealed !== undefined && { encrypted_content: sealed }),
  }
}

/** Parts with a text each. @param type of those that do not say theirs */
function readTexts(item: Json, name: string, type: string, path: string): readonly Json[] | undefined {
  return readArray(item, name, `${path}.${name}`)?.map((part, index) => {
    const at = `${path}.${name}[${index}]`
    if (!isObject(part)) wrongType(at, 'an object')
    return {
      type: readString(part, 'type', `${at}.type`) ?? type,
      text: readString(part, 'text', `${at}.text`) ?? missing(`${at}.text`),
    }
  })
}

function readMcpCall(item: Json, path: string): HistoryItem {
  const error = fieldOf(item, 'error')
  const approval = readString(item, 'approval_request_id', `${path}.approval_request_id`)
  return {
    ...head(item, 'mcp_call', path),
    server_label: requireString(item, 'server_label', `${path}.server_label`),
    name: requireString(item, 'name', `${path}.name`),
    arguments: readString(item, 'arguments', `${path}.arguments`) ?? '',
    output: readString(item, 'output', `${path}.output`) ?? '',
    status: statusOf(item, path),
    ...(error !== undefined && { error }),
    ...(approval !== undefined && { approval_request_id: approval }),
  }
}

function readApproval(item: Json, path: string): HistoryItem {
  const reason = readString(item, 'reason', `${path}.reason`)
  return {
    ...head(item, 'mcp_approval_response', path),
    approval_request_id: requireString(item, 'approval_request_id', `${path}.approval_request_id`),
    approve: readBoolean(item, 'approve', `${path}.approve`) ?? missing(`${path}.approve`),
    ...(reason !== undefined && { reason }),
  }
}

/** Its result stays with whoever ran it: what a client sends of it is kept, and the model is told what can be told. */
function readBuiltInCall(item: Json, type: string, path: string): HistoryItem {
  const action = readObject(item, 'action', `${path}.action`)
  return {
    ...head(item, type, path),
    status: statusOf(item, path),
    ...(action !== undefined && { action }),
    ...(type === 'code_interpreter_call' && {
      code: readString(item, 'code', `${path}.code`) ?? null,
      container_id: readString(item, 'container_id', `${path}.container_id`) ?? '',
      outputs: fieldOf(item, 'outputs') ?? null,
    }),
    ...(type === 'file_search_call' && {
      queries: readArray(item, 'queries', `${path}.queries`) ?? [],
      results: fieldOf(item, 'results') ?? null,
    }),
  }
}
