/** Requirements of a request for calls, in the form that all parsers use; ids of calls. */
import type { OutputConstraint, OutputParserRequest } from '#kernel'
import { uuidV7 } from '#shared'
import type { CallLimits, CallOutput } from './calls/call-output.ts'
import type { CallReader } from './calls/call-reader.ts'
import { ForcedCallReader } from './calls/json-arguments.ts'
import { json } from './formats/format-table.ts'
import { type CallChoice, callDemand, toolConstraint } from './output-constraint.ts'
import type { CallIds } from './output-stream.ts'
import type { DeclaredTool } from './scan/tool-types.ts'

export interface Demands {
  readonly choice: CallChoice
  readonly tools: readonly DeclaredTool[]
  readonly ids: CallIds
  readonly maxCalls: number
  /** Of the calls. */
  readonly constraint: OutputConstraint | null
  /** Calls are JSON, independent of the format of the model. */
  readonly hasCallSchema: boolean
  /** A grammar applies from the first token on. */
  readonly isConstrained: boolean
  /** The constrained output is JSON. */
  readonly isJson: boolean
}

/** @param format whose marks may be demanded @throws as `OutputParsersService.parserFor` */
export function demandsOf(request: OutputParserRequest, limits: CallLimits, format: string | null): Demands {
  const { choice, tools } = callDemand(request.tools ?? [], request.toolChoice ?? null)
  const constraint = toolConstraint(choice, tools, format)
  const hasCallSchema = constraint?.kind === 'json_schema'
  const kind = request.constraint?.kind
  return {
    choice,
    tools,
    ids: callIdsOf(request.model, request.earlierToolCalls ?? 0),
    maxCalls: request.allowsParallelCalls === false ? 1 : limits.maxCalls,
    constraint,
    hasCallSchema,
    // A structural tag applies only after its triggers.
    isConstrained: hasCallSchema || (kind !== undefined && kind !== 'structural_tag'),
    isJson: hasCallSchema || kind === 'json_schema' || kind === 'json_object',
  }
}

/** Reads calls that a schema requires. */
export function openDemandedCalls(out: CallOutput, { choice }: Demands): CallReader {
  return typeof choice === 'object' ? new ForcedCallReader(out, choice.name) : json.open(out)
}

/** @param earlierCalls tool calls in earlier messages of the request */
export function callIdsOf(model: string, earlierCalls: number): CallIds {
  const id = model.toLowerCase()
  if (!id.includes('kimi')) return randomCallId
  if (id.includes('k3')) return (index, name) => `${name}:${index}`
  return (index, name) => `functions.${name}:${earlierCalls + index}`
}

function randomCallId(): string {
  return `call_${uuidV7().replaceAll('-', '').slice(0, 24)}`
}
