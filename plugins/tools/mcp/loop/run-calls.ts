/** Runs the calls of one model turn, several in parallel, and reports them in the order of the model. */
import type { ToolCallResult, ToolLoopEvent } from '#kernel'
import type { Caller, RanCall, ToolCall, ToolRunner } from '../tools/run-tool.ts'
import { toServerArguments } from './built-in-functions.ts'
import type { ModelCall, ToolAnswer } from './model-call.ts'
import type { OfferedTool } from './offered-tools.ts'

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
  readonly approvalId: string | null
}

export interface RunParts {
  readonly runner: ToolRunner
  readonly caller: Caller
  readonly signal: AbortSignal
  /** Maximum number of parallel calls. */
  readonly atOnce: number
  emit(event: ToolLoopEvent): void
}

/** Never rejects. @returns one result for each call, in order */
export async function runCalls(calls: readonly PendingCall[], parts: RunParts): Promise<ToolAnswer[]> {
  const ran = new Array<Promise<RanCall>>(calls.length)
  const finished = calls.map(() => Promise.withResolvers<RanCall>())
  let next = 0
  const work = async () => {
    while (next < calls.length) {
      const i = next++
      const call = calls[i]
      if (call.index !== null) parts.emit({ type: 'call_running', index: call.index, tool: call.tool.called })
      finished[i].resolve(await parts.runner.run(toToolCall(call), parts.caller, parts.signal))
    }
  }
  for (let i = 0; i < calls.length; i++) ran[i] = finished[i].promise
  const workers = Array.from({ length: Math.min(parts.atOnce, calls.length) }, work)
  const answers: ToolAnswer[] = []
  for (const [i, call] of calls.entries()) {
    const { result, images } = await ran[i]
    tell(call, result, parts)
    answers.push({ callId: call.callId, text: result.modelText, isError: result.status === 'failed', images })
  }
  await Promise.all(workers)
  return answers
}

function tell(call: PendingCall, result: ToolCallResult, parts: RunParts): void {
  const { callId, index, approvalId, argumentText } = call
  const tool = call.tool.called
  if (index === null)
    parts.emit({ type: 'hidden_call', callId, tool, arguments: argumentText, modelText: result.modelText })
  else parts.emit({ type: 'call_done', index, callId, tool, arguments: argumentText, approvalId, result })
}

/** Reports calls of a truncated answer as incomplete. */
export function emitCutCalls(calls: readonly ModelCall[], emit: (event: ToolLoopEvent) => void): void {
  for (const { id, route, index, argumentText } of calls) {
    if (route.kind !== 'gateway' || index === null) continue
    const tool = route.tool.called
    emit({
      type: 'call_done',
      index,
      callId: id,
      tool,
      arguments: argumentText,
      approvalId: null,
      result: CUT,
    })
  }
}

function toToolCall({ tool, argumentText }: PendingCall): ToolCall {
  const { server, called } = tool
  const { config, builtIn, server: shown } = server.plan
  return {
    tool: called,
    server: shown,
    metricLabel: called.kind === 'built_in' ? called.type : (config?.label ?? 'client'),
    argumentText,
    send: (input, signal, timeoutMs) =>
      server.call(
        tool.tool.name,
        builtIn === null ? input : toServerArguments(input, builtIn.config, builtIn.request),
        { signal, timeoutMs },
      ),
  }
}

export class CallBudget {
  readonly #most: number
  used = 0

  /** @param wanted limit of the request; null if only the configured limit applies */
  constructor(wanted: number | null, most: number) {
    this.#most = Math.min(wanted ?? most, most)
  }

  /** False if no call is left. */
  take(): boolean {
    if (this.used >= this.#most) return false
    this.used++
    return true
  }
}
