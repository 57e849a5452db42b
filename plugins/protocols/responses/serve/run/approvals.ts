/** Approvals of pending calls, and servers whose tools the history lists. */
import type { ApprovalAnswer, HistoryItem, ListedServer } from '#kernel'
import { responsesErrors } from '../../errors.ts'

/**
 * Answers that this turn must process. Answers in the input that belong to its history were processed before.
 * @throws approval_request_not_found, approval_already_answered (400)
 */
export function answersOf(
  before: readonly HistoryItem[],
  input: readonly HistoryItem[],
  known: ReadonlyMap<string, HistoryItem>,
): ApprovalAnswer[] {
  const answers: ApprovalAnswer[] = []
  const answered = new Set<string>()
  for (const item of before)
    if (item.type === 'mcp_approval_response') answered.add(String(item.approval_request_id))
  const ran = new Set(
    input.map(({ type, approval_request_id: id }) => (type === 'mcp_call' ? id : undefined)),
  )
  // A denied call has no item: a later assistant message shows that the denial was processed.
  const lastMessage = input.findLastIndex(({ role }) => role === 'assistant')
  for (const [index, item] of input.entries()) {
    if (item.type !== 'mcp_approval_response') continue
    const approvalId = String(item.approval_request_id)
    const request = known.get(approvalId)
    if (request?.type !== 'mcp_approval_request')
      throw responsesErrors.approval_request_not_found.with({ param: 'input' }, approvalId)
    if (answered.has(approvalId))
      throw responsesErrors.approval_already_answered.with({ param: 'input' }, approvalId)
    answered.add(approvalId)
    if (item.approve === true ? ran.has(approvalId) : index < lastMessage) continue
    answers.push({
      approvalId,
      label: String(request.server_label),
      name: String(request.name),
      arguments: String(request.arguments),
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
