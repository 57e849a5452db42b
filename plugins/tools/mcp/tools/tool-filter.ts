/** Which tools of a server a request gets, and which of them wait for a person's word. */
import type { ApprovalRule, ToolFilter } from '#kernel'
import { isReadOnly, type ServerTool } from '../connection/read-tools.ts'

/** An empty list names no tool. */
export function isAllowed(tool: ServerTool, filter: ToolFilter | undefined): boolean {
  return filter === undefined || !hasMembers(filter) || matches(tool, filter)
}

/**
 * A tool that a rule object does not name needs approval.
 *
 * @param usual what holds when the request does not say
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

/** Of lists that requests name: they may be long, and are looked at for each tool. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>()

export function includesName(names: readonly string[], name: string): boolean {
  let set = sets.get(names)
  if (set === undefined) {
    set = new Set(names)
    sets.set(names, set)
  }
  return set.has(name)
}

function matches(tool: ServerTool, { toolNames, isReadOnly: wantsReadOnly }: ToolFilter): boolean {
  if (toolNames !== undefined && !includesName(toolNames, tool.name)) return false
  return wantsReadOnly === undefined || wantsReadOnly === isReadOnly(tool)
}

function hasMembers(filter: ToolFilter): boolean {
  return filter.toolNames !== undefined || filter.isReadOnly !== undefined
}
