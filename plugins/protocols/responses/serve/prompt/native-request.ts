/** A create request for a worker that speaks the format itself. */
import type { BuiltInType, JsonObject, NativeRequest, WorkerEntry } from '#kernel'
import type { CreateBody } from '../../wire.ts'
import { builtInType } from '../read/read-tools.ts'

/** Members that the gateway handles itself, or writes for each worker. */
const OWN_MEMBERS = new Set([
  'model',
  'input',
  'stream',
  'store',
  'background',
  'generate',
  'metadata',
  'previous_response_id',
  'conversation',
  'tools',
  'tool_choice',
  'context_management',
])

interface NativeSource {
  /** Checked. */
  readonly body: CreateBody
  readonly functions: NativeRequest['functions']
  readonly messageCount: number
  /** Items of the prompt. */
  readonly items: () => readonly JsonObject[]
  /** True for a built-in tool that the gateway runs. */
  readonly runs: (type: BuiltInType) => boolean
}

/** The context management of the gateway. */
export function isCompaction({ type }: NonNullable<CreateBody['context_management']>[number]): boolean {
  return type == null || type === 'compaction'
}

export function speaksResponses({ apis }: WorkerEntry): boolean {
  return apis.includes('responses')
}

export function nativeRequest({ body, functions, messageCount, items, runs }: NativeSource): NativeRequest {
  let made: readonly JsonObject[] | null = null
  const declared = body.tools ?? []
  const tools = declared.filter(({ type }) => isForeign(type, runs))
  const choice = body.tool_choice ?? null
  const isForeignChoice = typeof choice === 'object' && tools.some(({ type }) => type === choice?.type)
  // Without functions, a mode is about the tools of the worker.
  const isMode = typeof choice === 'string' && !declared.some(({ type }) => CALLED_HERE.has(type))
  return {
    engine: 'responses',
    messageCount,
    prompt: () => {
      made ??= items()
      return made
    },
    members: () => {
      const members: Record<string, unknown> = Object.fromEntries(
        Object.entries(body).filter(([name, value]) => !OWN_MEMBERS.has(name) && value !== null),
      )
      const foreign = body.context_management?.filter((entry) => !isCompaction(entry)) ?? []
      if (foreign.length > 0) members.context_management = foreign
      return members
    },
    tools,
    functions,
    toolChoice: isForeignChoice || isMode ? choice : null,
  }
}

/** Types of tools whose calls the gateway reads. */
const CALLED_HERE: ReadonlySet<string> = new Set(['function', 'mcp'])

function isForeign(type: string, runs: NativeSource['runs']): boolean {
  if (CALLED_HERE.has(type)) return false
  const builtIn = builtInType(type)
  return builtIn === null || !runs(builtIn)
}
