/** Answers to calls that wait for one, and the tools that the history has listed already. @source responses facts 4.7 */
import type { ApprovalAnswer, HistoryItem, ListedServer } from '#contracts'
import { responsesErrors } from '../errors.ts'

/** @throws approval_request_not_found, approval_already_answered (400) */
export function answersOf(
  before: readonly HistoryItem[],
  input: readonly HistoryItem[],
  known: ReadonlyMap<string, HistoryItem>,
): ApprovalAnswer[] {
  const answers: ApprovalAnswer[] = []
  const answered = new Set<string>()
  for (const item of before)
    if (item.type === 'mcp_approval_response') answered.add(String(item.approval_request_id))
  for (const item of input) {
    if (item.type !== 'mcp_approval_response') continue
    const approvalId = String(item.approval_request_id)
    const asked = known.get(approvalId)
    if (asked?.type !== 'mcp_approval_request')
      throw responsesErrors.approval_request_not_found.with({ param: 'input' }, approvalId)
    if (answered.has(approvalId))
      throw responsesErrors.approval_already_answered.with({ param: 'input' }, approvalId)
    answered.add(approvalId)
    answers.push({
      approvalId,
      label: String(asked.server_label),
      name: String(asked.name),
      arguments: String(asked.arguments),
      isApproved: item.approve === true,
      ...(typeof item.reason === 'string' && { reason: item.reason }),
    })
  }
  return answers
}

/** Servers whose tools the history lists. */
export function listedIn(before: readonly HistoryItem[]): ListedServer[] {
  const listed: ListedServer[] = []
  for (const item of before) {
    if (item.type !== 'mcp_list_tools' || item.error !== undefined) continue
    const fingerprint = typeof item._fingerprint === 'string' ? item._fingerprint : null
    listed.push({ label: String(item.server_label), fingerprint })
  }
  return listed
}
