/**
 * Approval requests, and the client's responses to them: of calls, and of questions of tool servers. The id says which of both,
 * and only the stored item of a question holds the call that waits for the answer, so neither can stand for the other.
 */
import type { ApprovalAnswer, HistoryItem, ServerQuestion } from '#kernel'
import { newId, newItemId } from '#shared'
import { responsesErrors } from '../errors.ts'
import type { EventOf } from './output/open-item.ts'

const TYPE = 'mcp_approval_request'
const ANSWER = 'mcp_approval_response'
const QUESTION_ID = 'mcpq'
/** Instead of the name of a tool: the method by which the server asks. */
const QUESTION_NAME = 'elicitation/create'

/** A call that waits for the approval of the client, or for its answer: whole from its beginning. */
export function approvalItem(event: EventOf<'approval_requested'>): HistoryItem {
  const { label: server_label, name, arguments: args, question } = event
  if (question === undefined) return { id: newItemId(TYPE), type: TYPE, server_label, name, arguments: args }
  return {
    id: newId(QUESTION_ID),
    type: TYPE,
    server_label,
    name: QUESTION_NAME,
    arguments: JSON.stringify(question.params),
    _call: { name, arguments: args, question },
  }
}

/** Whether the approval request is a question of a server. */
export function isQuestion({ id }: HistoryItem): boolean {
  return id.startsWith(`${QUESTION_ID}_`)
}

type AskedCall = Pick<ApprovalAnswer, 'name' | 'arguments'> & { readonly question: ServerQuestion }

/** @throws approval_request_not_found (400) for an item from the client, which does not hold the call */
function askedCall({ id, _call: call }: HistoryItem): AskedCall {
  if (call === undefined) throw responsesErrors.approval_request_not_found.with({ param: 'input' }, id)
  return call as AskedCall
}

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
  // As for nearly all turns.
  if (!input.some(({ type }) => type === ANSWER)) return answers
  const earlier = before.filter(({ type }) => type === ANSWER)
  const answered = new Set(earlier.map(({ approval_request_id: id }) => String(id)))
  const ran = new Set(
    input.map(({ type, approval_request_id: id }) => (type === 'mcp_call' ? id : undefined)),
  )
  // A denied call has no item: a later assistant message shows that the denial was processed.
  const lastMessage = input.findLastIndex(({ role }) => role === 'assistant')
  for (const [index, item] of input.entries()) {
    if (item.type !== ANSWER) continue
    const approvalId = String(item.approval_request_id)
    const request = known.get(approvalId)
    if (request?.type !== TYPE)
      throw responsesErrors.approval_request_not_found.with({ param: 'input' }, approvalId)
    if (answered.has(approvalId))
      throw responsesErrors.approval_already_answered.with({ param: 'input' }, approvalId)
    answered.add(approvalId)
    const isOfQuestion = isQuestion(request)
    if (isOfQuestion || item.approve === true ? ran.has(approvalId) : index < lastMessage) continue
    answers.push({
      approvalId,
      label: String(request.server_label),
      ...(isOfQuestion
        ? askedCall(request)
        : { name: String(request.name), arguments: String(request.arguments) }),
      isApproved: item.approve === true,
      ...(typeof item.reason === 'string' && { reason: item.reason }),
    })
  }
  return answers
}

/** The items without these answers, whose calls and questions the tool loop runs or rejects. */
export function withoutAnswers(
  items: readonly HistoryItem[],
  answers: readonly ApprovalAnswer[],
): readonly HistoryItem[] {
  if (answers.length === 0) return items
  const ids = new Set(answers.map(({ approvalId }) => approvalId))
  return items.filter(({ type, approval_request_id: id }) => type !== ANSWER || !ids.has(String(id)))
}
