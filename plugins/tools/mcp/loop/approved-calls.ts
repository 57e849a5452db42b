/** Calls that had to wait and now have an answer: what is approved is begun, what is denied is told to the model. */
import type { ApprovalAnswer, ChatMessage, ToolCallResult } from '#kernel'
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

export function beginApproved(
  answers: readonly ApprovalAnswer[],
  offered: OfferedTools,
  budget: CallBudget,
  voice: TurnVoice,
  isHidden: (label: string) => boolean,
): ApprovedCalls {
  const calls = answers.map((answer) => {
    const id = voice.callId(answer.approvalId)
    const name = nameToday({ kind: 'mcp', label: answer.label, name: answer.name }, offered)
    return { id, type: 'function' as const, function: { name, arguments: answer.arguments } }
  })
  const steps = answers.map((answer, i) => {
    const { id } = calls[i]
    const { isApproved, reason, label } = answer
    if (!isApproved)
      return refuse(id, reason ? `The user denied this call: ${reason}` : 'The user denied this call.')
    return begin(answer, id, offered, budget, isHidden(label) ? null : voice)
  })
  return { message: { role: 'assistant', content: null, tool_calls: calls }, steps }
}

/** @param voice null for calls that clients do not see */
function begin(
  { approvalId, label, name, arguments: argumentText }: ApprovalAnswer,
  callId: string,
  offered: OfferedTools,
  budget: CallBudget,
  voice: TurnVoice | null,
): PendingCall | ToolAnswer {
  const tool = offered.findOrigin({ kind: 'mcp', label, name })
  const called = tool?.called ?? { kind: 'mcp', label, name }
  const index = voice?.nextIndex() ?? null
  if (voice !== null && index !== null) {
    voice.emit({ type: 'call_started', index, callId, tool: called, approvalId })
    if (argumentText !== '') voice.emit({ type: 'call_arguments', index, delta: argumentText })
    voice.emit({ type: 'call_arguments_done', index, arguments: argumentText })
  }
  if (tool !== undefined && budget.take()) return { callId, tool, argumentText, index, approvalId }
  const text = tool === undefined ? TOOL_IS_GONE : LIMIT_REACHED
  // The client has agreed to this call, and is shown that it does not run.
  if (voice !== null && index !== null)
    voice.emit({
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
