/** Calls that had to wait and now have an answer: what is approved is begun, what is denied is told to the model. */
import type { ApprovalAnswer, ChatMessage } from '#contracts'
import type { CallBudget } from './call-budget.ts'
import type { OfferedTools } from './offered-tools.ts'
import { LIMIT_REACHED, refuse, TOOL_IS_GONE } from './refused-calls.ts'
import type { PendingCall } from './run-calls.ts'
import { nameToday, type ToolAnswer } from './turn-messages.ts'
import type { TurnVoice } from './turn-voice.ts'

export interface ApprovedCalls {
  /** The assistant's message that holds all of them. */
  readonly message: ChatMessage
  /** In the order of the answers: a call to be run, or what the model is told in its place. */
  readonly steps: readonly (PendingCall | ToolAnswer)[]
}

/** @source responses facts 4.7 */
export function beginApproved(
  answers: readonly ApprovalAnswer[],
  offered: OfferedTools,
  budget: CallBudget,
  voice: TurnVoice,
): ApprovedCalls {
  const calls = answers.map((answer) => {
    const id = voice.callId(answer.approvalId)
    const name = nameToday({ kind: 'mcp', label: answer.label, name: answer.name }, offered)
    return { id, type: 'function' as const, function: { name, arguments: answer.arguments } }
  })
  const steps = answers.map((answer, i) => begin(answer, calls[i].id, offered, budget, voice))
  return { message: { role: 'assistant', content: null, tool_calls: calls }, steps }
}

function begin(
  answer: ApprovalAnswer,
  callId: string,
  offered: OfferedTools,
  budget: CallBudget,
  voice: TurnVoice,
): PendingCall | ToolAnswer {
  const { approvalId, label, name, arguments: argumentText, isApproved, reason } = answer
  if (!isApproved)
    return refuse(callId, reason ? `The user denied this call: ${reason}` : 'The user denied this call.')
  const tool = offered.findOrigin({ kind: 'mcp', label, name })
  if (tool === undefined) return refuse(callId, TOOL_IS_GONE)
  if (!budget.take()) return refuse(callId, LIMIT_REACHED)
  if (tool.isHidden) return { callId, tool, argumentText, index: null, approvalId }
  const index = voice.nextIndex()
  voice.emit({ type: 'call_started', index, callId, tool: tool.called, approvalId })
  if (argumentText !== '') voice.emit({ type: 'call_arguments', index, delta: argumentText })
  voice.emit({ type: 'call_arguments_done', index, arguments: argumentText })
  return { callId, tool, argumentText, index, approvalId }
}
