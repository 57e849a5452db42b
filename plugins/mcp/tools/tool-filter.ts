/** Which tools of a server a request gets, and which of them wait for a person's word. */
import type { ApprovalRule, ToolFilter } from '#contracts'
import { isReadOnly, type ServerTool } from '../connection/read-tools.ts'

/** @source responses facts 4.3: an empty list names no tool */
export function isAllowed(tool: ServerTool, filter: ToolFilter | undefined): boolean {
  return filter === undefined || !hasMembers(filter) || matches(tool, filter)
}

/**
 * @param usual what holds when the request does not say
 * @source responses facts 4.7: what an object of rules does not name has to wait
 */
export function needsApproval(
  tool: ServerTool,
  rule: ApprovalRule | undefined,
  usual: 'always' | 'never',
): boolean {
  const wanted = rule ?? usual
  if (typeof wanted === 'string') return wanted === 'always'
  return !(wanted.never !== undefined && hasMembers(wanted.never) && matches(tool, wanted.never))
}

function matches(tool: ServerTool, { toolNames, isReadOnly: wantsReadOnly }: ToolFilter): boolean {
  if (toolNames !== undefined && !toolNames.includes(tool.name)) return false
  return wantsReadOnly === undefined || wantsReadOnly === isReadOnly(tool)
}

function hasMembers(filter: ToolFilter): boolean {
  return filter.toolNames !== undefined || filter.isReadOnly !== undefined
}
