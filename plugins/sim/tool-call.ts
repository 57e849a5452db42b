/** Decides whether the model calls a tool, which one, and with what arguments. */
import { isObject } from '#kernel'
import { messageText } from './prompt.ts'
import type { Random } from './random.ts'
import { sampleOfSchema } from './schema-sample.ts'
import { countTokens } from './tokens.ts'
import type { ChatRequest, ScriptedAnswer, Tool } from './wire.ts'

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

/** Text in the last user message that triggers a tool call. */
const TRIGGER_TEXT = 'call tool'

/**
 * The calls of one answer; empty when it is text.
 * A tool is called if the request requires one or its last message has the trigger text. A tool result is answered with
 * text, so that tool loops end.
 */
export function chooseToolCalls(
  request: ChatRequest,
  script: ScriptedAnswer | null,
  random: Random,
): ToolCall[] {
  const scripted = script?.tool_calls
  if (scripted !== undefined) return scripted.map((call) => toToolCall(call.name, call.arguments, random))
  if (script !== null) return []
  const tool = chooseTool(request)
  return tool === undefined ? [] : [toToolCall(nameOf(tool), sampleArguments(tool), random)]
}

export function toolCallTokens(calls: readonly ToolCall[]): number {
  return calls.reduce((sum, call) => sum + countTokens(call.name) + countTokens(call.arguments), 0)
}

function chooseTool(request: ChatRequest): Tool | undefined {
  const tools = (request.tools ?? []).filter((tool) => nameOf(tool) !== '')
  const choice = request.tool_choice
  if (tools.length === 0 || choice === 'none') return undefined
  if (choice === 'required') return mentioned(tools, request)
  if (isObject(choice)) {
    const named = nameIn(choice)
    if (named !== undefined) return tools.find((tool) => nameOf(tool) === named)
    // Allowed tools stand either in the choice itself or one level down.
    const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : choice
    const names = Array.isArray(allowed.tools) ? allowed.tools.filter(isObject).map(nameIn) : []
    const subset = tools.filter((tool) => names.includes(nameOf(tool)))
    return allowed.mode === 'required' || mentionsTrigger(request) ? mentioned(subset, request) : undefined
  }
  return mentionsTrigger(request) ? mentioned(tools, request) : undefined
}

function mentionsTrigger(request: ChatRequest): boolean {
  const last = request.messages.at(-1)
  return last?.role === 'user' && messageText(last).toLowerCase().includes(TRIGGER_TEXT)
}

/** The first tool that the last message names, else the first. */
function mentioned(tools: readonly Tool[], request: ChatRequest): Tool | undefined {
  const last = request.messages.at(-1)
  const text = last === undefined ? '' : messageText(last)
  return tools.find((tool) => text.includes(nameOf(tool))) ?? tools[0]
}

function sampleArguments(tool: Tool): unknown {
  const parameters = tool.function?.parameters
  const value = sampleOfSchema(parameters)
  return isObject(value) ? value : {}
}

function toToolCall(name: string, args: unknown, random: Random): ToolCall {
  return {
    id: `call_${random.hex(24)}`,
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
  }
}

function nameOf(tool: Tool): string {
  return tool.function?.name ?? ''
}

function nameIn(choice: Record<string, unknown>): string | undefined {
  const place = isObject(choice.function) ? choice.function.name : choice.name
  return typeof place === 'string' ? place : undefined
}
