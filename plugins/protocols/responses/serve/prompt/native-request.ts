/** A create request for a worker that speaks the format itself. */
import type { BuiltInType, JsonObject, NativeRequest, WorkerEntry } from '#kernel'
import { builtInType } from '../read/read-tools.ts'

/** Members that the gateway handles itself, or writes for each worker. */
const OWN_MEMBERS = new Set([
  'model',
  'input',
  'stream',
  'stream_options',
  'store',
  'background',
  'generate',
  'metadata',
  'previous_response_id',
  'conversation',
  'tools',
  'tool_choice',
  'max_tool_calls',
  'context_management',
])

export interface NativeSource {
  readonly body: JsonObject
  readonly messageCount: number
  /** Items of the prompt. */
  readonly items: () => readonly JsonObject[]
  /** True for a built-in tool that the gateway runs. */
  readonly runs: (type: BuiltInType) => boolean
}

export function speaksResponses({ apis }: WorkerEntry): boolean {
  return apis.includes('responses')
}

export function nativeRequest({ body, messageCount, items, runs }: NativeSource): NativeRequest {
  let made: readonly JsonObject[] | null = null
  const tools = Array.isArray(body.tools)
    ? (body.tools as JsonObject[]).filter((tool) => isForeign(tool, runs))
    : []
  const types = new Set(tools.map(({ type }) => type))
  const choice = body.tool_choice
  const isForeignChoice =
    typeof choice === 'object' && choice !== null && types.has((choice as JsonObject).type as string)
  // Without functions, a mode is about the tools of the worker.
  const isMode = typeof choice === 'string' && !hasFunctions(body)
  return {
    engine: 'responses',
    messageCount,
    prompt: () => {
      made ??= items()
      return made
    },
    members: () =>
      Object.fromEntries(
        Object.entries(body).filter(([name, value]) => !OWN_MEMBERS.has(name) && value !== null),
      ),
    tools,
    toolChoice: isForeignChoice || isMode ? choice : null,
  }
}

function isForeign({ type }: JsonObject, runs: NativeSource['runs']): boolean {
  if (type === 'function' || type === 'mcp') return false
  const builtIn = builtInType(String(type))
  return builtIn === null || !runs(builtIn)
}

function hasFunctions({ tools }: JsonObject): boolean {
  return (
    Array.isArray(tools) &&
    (tools as readonly JsonObject[]).some(({ type }) => type === 'function' || type === 'mcp')
  )
}
