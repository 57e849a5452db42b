/** Runs the calls of one model turn and those that a client has approved, several in parallel, and reports them in order. */
import type { ApprovalAnswer, ChatMessage, TextEditors, TextStream, ToolCallResult } from '#kernel'
import { editTexts } from '#shared'
import type { QuestionAnswer } from '../connection/call-tool.ts'
import { toQuestionAnswer } from '../tools/question-answers.ts'
import type { OfferedTool, OfferedTools } from './offered-tools.ts'
import type { Caller, RanCall, ToolRunner } from './run-tool.ts'
import {
  currentName,
  LIMIT_REACHED,
  type ModelCall,
  refuse,
  TOOL_NOT_AVAILABLE,
  type ToolAnswer,
} from './turn-messages.ts'
import type { TurnOutput } from './turn-output.ts'

const CUT: ToolCallResult = {
  status: 'incomplete',
  output: '',
  error: null,
  modelText: '',
  structured: null,
  durationMs: 0,
}

/** A call to run. */
export interface PendingCall {
  readonly callId: string
  readonly tool: OfferedTool
  readonly argumentText: string
  /** Null for calls that clients do not see. */
  readonly index: number | null
  /** The answer to the question that ended an earlier run. */
  readonly answer?: QuestionAnswer
}

interface RunParts {
  readonly runner: ToolRunner
  readonly caller: Caller
  readonly signal: AbortSignal
  /** Maximum number of parallel calls. */
  readonly atOnce: number
  readonly output: TurnOutput
  /** Editors of the texts of results; null without text hooks. */
  readonly editorOf: TextEditors | null
}

/** Rejects only if a text hook throws. @returns one result for each call, in order */
export async function runCalls(calls: readonly PendingCall[], parts: RunParts): Promise<ToolAnswer[]> {
  const finished = calls.map(() => Promise.withResolvers<RanCall>())
  let next = 0
  const work = async () => {
    while (next < calls.length) {
      const i = next++
      const call = calls[i]
      if (call.index !== null) parts.output.emit({ type: 'call_running', choice: 0, index: call.index })
      const { tool, argumentText, answer } = call
      const elicits = call.index !== null && tool.server.plan.request?.elicits === true
      const options = { signal: parts.signal, elicits, answer }
      const ran = await parts.runner.run(tool, argumentText, parts.caller, options)
      finished[i].resolve(parts.editorOf === null ? ran : edited(ran, call, parts.editorOf))
    }
  }
  // Awaited in order: one that rejects may not be awaited any more.
  for (const { promise } of finished) promise.catch(() => {})
  const workers = Array.from({ length: Math.min(parts.atOnce, calls.length) }, work)
  const answers: ToolAnswer[] = []
  for (const [i, call] of calls.entries()) {
    const { result, images } = await finished[i].promise
    emitEnd(call, result, parts.output)
    const isError = result.status === 'failed'
    const isQuestion = result.question !== undefined
    answers.push({ callId: call.callId, text: result.modelText, isError, images, isQuestion })
  }
  await Promise.all(workers)
  return answers
}

/** Clients, the model and the store get what the hooks return. */
async function edited(
  { result, images }: RanCall,
  call: PendingCall,
  editorOf: TextEditors,
): Promise<RanCall> {
  const { called, tool } = call.tool
  const name = called.kind === 'mcp' ? called.name : tool.name
  const stream: TextStream = { kind: 'tool_output', choice: 0, call: { id: call.callId, name } }
  const edit = async (text: string) => (await editorOf(stream)?.edit(text, true)) ?? text
  const { output, modelText, error, structured, question } = result
  const said = await edit(modelText)
  return {
    result: {
      ...result,
      output: output === modelText ? said : await edit(output),
      modelText: said,
      error:
        error === null
          ? null
          : { ...error, message: error.message === modelText ? said : await edit(error.message) },
      structured: await editTexts(structured, edit),
      ...(question !== undefined && {
        question: { ...question, params: (await editTexts(question.params, edit)) as typeof question.params },
      }),
    },
    images,
  }
}

function emitEnd(call: PendingCall, result: ToolCallResult, output: TurnOutput): void {
  const { callId, index, argumentText } = call
  const tool = call.tool.called
  const about = { choice: 0, arguments: argumentText }
  if (index === null) {
    output.emit({ type: 'hidden_call', ...about, callId, tool, modelText: result.modelText })
    return
  }
  output.emit({ type: 'call_done', ...about, index, result })
  const { question } = result
  if (question !== undefined && tool.kind === 'mcp')
    output.emit({ ...tool, ...about, type: 'approval_requested', callId, question })
}

/** Reports calls of a truncated answer as incomplete. */
export function emitCutCalls(calls: readonly ModelCall[], output: TurnOutput): void {
  for (const { route, index, argumentText } of calls)
    if (route.kind === 'gateway' && index !== null)
      output.emit({ type: 'call_done', choice: 0, index, arguments: argumentText, result: CUT })
}

export class CallBudget {
  readonly #limit: number
  used = 0

  /** @param requested limit of the request; null if only the configured limit applies */
  constructor(requested: number | null, configured: number) {
    this.#limit = Math.min(requested ?? configured, configured)
  }

  /** False if no call is left. */
  take(): boolean {
    if (this.used >= this.#limit) return false
    this.used++
    return true
  }
}

interface ApprovedCalls {
  /** Assistant message with all of the calls. */
  readonly message: ChatMessage
  /** In the order of the answers: a call to run, or its refusal for the model. */
  readonly steps: readonly (PendingCall | ToolAnswer)[]
}

/**
 * Calls that waited for approval or an answer: approved and answered ones are started, the model receives a refusal for
 * denied ones.
 */
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
    const { isApproved, reason, label, question } = answer
    if (!isApproved && question === undefined)
      return refuse(id, reason ? `The user denied this call: ${reason}` : 'The user denied this call.')
    return begin(answer, id, offered, budget, isHidden(label) ? null : output)
  })
  return { message: { role: 'assistant', content: null, tool_calls: calls }, steps }
}

/** @param output null for calls hidden from clients */
function begin(
  given: ApprovalAnswer,
  callId: string,
  offered: OfferedTools,
  budget: CallBudget,
  output: TurnOutput | null,
): PendingCall | ToolAnswer {
  const { approvalId, label, name, arguments: argumentText, question } = given
  const tool = offered.findOrigin({ kind: 'mcp', label, name })
  const called = tool?.called ?? { kind: 'mcp', label, name }
  const index = output?.nextCall() ?? null
  if (output !== null && index !== null) {
    const call = { choice: 0, index }
    output.emit({ type: 'tool_call', ...call, id: callId, name, tool: called, approvalId })
    if (argumentText !== '') output.emit({ type: 'tool_arguments', ...call, delta: argumentText })
    output.emit({ type: 'tool_call_done', ...call })
  }
  const answer = question && toQuestionAnswer(given, question)
  if (tool !== undefined && budget.take())
    return { callId, tool, argumentText, index, ...(answer && { answer }) }
  const text = tool === undefined ? TOOL_NOT_AVAILABLE : LIMIT_REACHED
  // The client approved this call, so its failure is visible.
  if (output !== null && index !== null)
    output.emit({ type: 'call_done', choice: 0, index, arguments: argumentText, result: notRun(text) })
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
