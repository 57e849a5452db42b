/** Ids of items and responses: a prefix for the type, and a time-ordered rest. */
import { uuidV7Hex } from './uuid-v7.ts'

const PREFIX = new Map([
  ['message', 'msg'],
  ['reasoning', 'rs'],
  ['function_call', 'fc'],
  ['function_call_output', 'fco'],
  ['mcp_list_tools', 'mcpl'],
  ['mcp_call', 'mcp'],
  ['mcp_approval_request', 'mcpr'],
  ['mcp_approval_response', 'mcpa'],
  ['web_search_call', 'ws'],
  ['code_interpreter_call', 'ci'],
  ['file_search_call', 'fs'],
  ['compaction', 'cmp'],
  ['custom_tool_call', 'ctc'],
  ['image_generation_call', 'ig'],
  ['tool_search_call', 'tsc'],
  ['tool_search_output', 'tso'],
])

export function newItemId(type: string): string {
  return newId(PREFIX.get(type) ?? 'item')
}

export function newId(prefix: string): string {
  return `${prefix}_${uuidV7Hex()}`
}
