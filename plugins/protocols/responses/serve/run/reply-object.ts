/** The response as clients see it, with every key. */
import type { GenerationUsage, HistoryItem, ResponseRecord, ResponseStatus } from '#kernel'
import { toClientItems } from '#shared'
import type { Json } from '../read/fields.ts'

export interface ReplyState {
  readonly id: string
  readonly createdAtSec: number
  readonly status: ResponseStatus
  readonly error: object | null
  readonly incompleteReason: string | null
  /** Null until the end. */
  readonly usage: GenerationUsage | null
  readonly isOver: boolean
}

/** All but `output`. @param echo what the request asked for */
export function replyMembers(state: ReplyState, echo: Json): Json {
  const { status, incompleteReason, usage, isOver } = state
  return {
    id: state.id,
    object: 'response',
    created_at: state.createdAtSec,
    completed_at: status === 'completed' ? Math.floor(Date.now() / 1000) : null,
    status,
    error: state.error,
    incomplete_details: incompleteReason === null ? null : { reason: incompleteReason },
    ...echo,
    usage: isOver ? toWireUsage(usage) : null,
  }
}

/** The JSON of `replyMembers`. @param echo the JSON of a never empty object */
export function replyMembersText(state: ReplyState, echo: string): string {
  const { id, createdAtSec, status, error, incompleteReason, usage, isOver } = state
  const completedAt = status === 'completed' ? Math.floor(Date.now() / 1000) : 'null'
  const incomplete = incompleteReason === null ? 'null' : `{"reason":"${incompleteReason}"}`
  const problem = error === null ? 'null' : JSON.stringify(error)
  const head = `{"id":"${id}","object":"response","created_at":${createdAtSec},"completed_at":${completedAt}`
  const outcome = `"status":"${status}","error":${problem},"incomplete_details":${incomplete}`
  const used = isOver ? usageText(usage) : 'null'
  return `${head},${outcome},${echo.slice(1, -1)},"usage":${used}}`
}

/** The whole reply. @param members a JSON object, never empty. @param output a JSON array */
export function replyText(members: string, output: string): string {
  return `${members.slice(0, -1)},"output":${output}}`
}

/** @param output as clients see it */
export function replyObject(members: Json, output: readonly HistoryItem[]): Json {
  return { ...members, output }
}

/** A stored response. */
export function storedReply({ reply, output }: ResponseRecord): Json {
  return replyObject(reply, toClientItems(output))
}

/** The JSON of `toWireUsage`. */
function usageText(usage: GenerationUsage | null): string {
  const input = usage?.inputTokens ?? 0
  const output = usage?.outputTokens ?? 0
  const read = `"input_tokens":${input},"input_tokens_details":{"cached_tokens":${usage?.cachedTokens ?? 0}}`
  const thought = `"output_tokens_details":{"reasoning_tokens":${usage?.reasoningTokens ?? 0}}`
  return `{${read},"output_tokens":${output},${thought},"total_tokens":${input + output}}`
}

/** Zeros where no worker told: clients refuse an end without numbers. */
export function toWireUsage(usage: GenerationUsage | null): Json {
  const input = usage?.inputTokens ?? 0
  const output = usage?.outputTokens ?? 0
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage?.cachedTokens ?? 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage?.reasoningTokens ?? 0 },
    total_tokens: input + output,
  }
}
