/** Calls that waited for approval: approved ones are started, the model receives a refusal for denied ones. */
import type { ApprovalAnswer, ChatMessage, ToolCallResult } from '#kernel'
import { LIMIT_REACHED, refuse, TOOL_NOT_AVAILABLE, type ToolAnswer } from './model-call.ts'
import type { OfferedTools } from './offered-tools.ts'
import type { CallBudget, PendingCall } from './run-calls.ts'
import { currentName } from './turn-messages.ts'
import type { TurnOutput } from './turn-output.ts'

export interface ApprovedCalls {
  /** Assistant message with all of the calls. */
  readonly message: ChatMessage
  /** In the order of the answers: a call to run, or its refusal for the model. */
  readonly steps: readonly (PendingCall | ToolAnswer)[]
}

export function beginApproved(
  answers: readonly ApprovalAnswer[],
  offered: OfferedTools,
  budget: CallBudget,
  output: TurnOutput,
  isHidden: (label: string) => boolean,
): ApprovedCalls {
  const calls = answers.map((answer) => {
    const id = output.callId(answer.approvalId)
    const name = currentName({ kind: 'mcp', label: answer.label, name: answer.name }, offered)
    return { id, type: 'function' as const, function: { name, arguments: answer.arguments } }
  })
  const steps = answers.map((answer, i) => {
    const { id } = calls[i]
    const { isApproved, reason, label } = answer
    if (!isApproved)
      return refuse(id, reason ? `The user denied this call: ${reason}` : 'The user denied this call.')
    return begin(answer, id, offered, budget, isHidden(label) ? null : output)
  })
  return { message: { role: 'assistant', content: null, tool_calls: calls }, steps }
}

/** @param output null for calls hidden from clients */
function begin(
  { approvalId, label, name, arguments: argumentText }: ApprovalAnswer,
  callId: string,
  offered: OfferedTools,
  budget: CallBudget,
  output: TurnOutput | null,
): PendingCall | ToolAnswer {
  const tool = offered.findOrigin({ kind: 'mcp', label, name })
  const called = tool?.called ?? { kind: 'mcp', label, name }
  const index = output?.nextIndex() ?? null
  if (output !== null && index !== null) {
    output.emit({ type: 'call_started', index, callId, tool: called, approvalId })
    if (argumentText !== '') output.emit({ type: 'call_arguments', index, delta: argumentText })
    output.emit({ type: 'call_arguments_done', index, arguments: argumentText })
  }
  if (tool !== undefined && budget.take()) return { callId, tool, argumentText, index, approvalId }
  const text = tool === undefined ? TOOL_NOT_AVAILABLE : LIMIT_REACHED
  // The client approved this call, so its failure is visible.
  if (output !== null && index !== null)
    output.emit({
      type: 'call_done',
      index,
      callId,
      tool: called,
      arguments: argumentText,
      approvalId,
      result: notRun(text),
    })
  return refuse(callId, text)
}

function notRun(message: string): ToolCallResult {
  return {
    status: 'failed',
    output: '',
    error: { type: 'mcp_protocol_error', code: 0, message },
    modelText: message,
    structured: null,
    durationMs: 0,
  }
}
