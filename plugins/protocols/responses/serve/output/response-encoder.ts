/** Encodes a response as JSON with every key, and the events of its beginning and its end. */
import {
  type GatewayError,
  type GenerationUsage,
  type HistoryItem,
  isObject,
  type JsonObject,
  type NativeObject,
  type ResponseRecord,
  type ResponseStatus,
} from '#kernel'
import { answerErrors, toClientItems } from '#shared'
import { errorEventMembers, toResponseError } from '../../error-format.ts'
import { type EventEncoder, framesOf, membersOf } from './event-encoder.ts'

/** How a response ended. */
export interface ResponseEnd {
  readonly error?: GatewayError | null
  readonly usage: GenerationUsage | null
  readonly incompleteReason?: string | null
  /** The response of a worker that speaks the format. */
  readonly native?: NativeObject
  /** For clients that see no response header. */
  readonly warnings?: readonly string[]
}

/** Members that the gateway writes itself, although the response of the worker has them too. */
const OWN_MEMBERS: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created_at',
  'completed_at',
  'status',
  'error',
  'incomplete_details',
  'output',
  'output_text',
  'usage',
  'background',
  'conversation',
  'instructions',
  'max_tool_calls',
  'metadata',
  'model',
  'previous_response_id',
  'store',
  'tool_choice',
  'tools',
])

export class ResponseEncoder {
  readonly #id: string
  readonly #createdAtSec: number
  readonly #echo: JsonObject
  readonly #echoText: string

  /** @param echo members that repeat the request */
  constructor({ id, createdAtSec }: { id: string; createdAtSec: number }, echo: JsonObject) {
    this.#id = id
    this.#createdAtSec = createdAtSec
    this.#echo = echo
    this.#echoText = membersOf(echo)
  }

  /** JSON text of all members but the output. @param end undefined until the response has ended */
  members(status: ResponseStatus, end?: ResponseEnd): string {
    const error = end?.error ?? (status === 'failed' ? answerErrors.worker_aborted() : null)
    const reason = end?.incompleteReason ?? null
    const { warnings = [] } = end ?? {}
    const head = membersOf({
      id: this.#id,
      object: 'response',
      created_at: this.#createdAtSec,
      completed_at: status === 'completed' ? Math.floor(Date.now() / 1000) : null,
      status,
      error: error === null ? null : toResponseError(error),
      incomplete_details: reason === null ? null : { reason },
      ...(warnings.length > 0 && { x_weir_warning: warnings.join(', ') }),
    })
    const usage = end === undefined ? 'null' : JSON.stringify(toWireUsage(end.usage, end.native?.usage))
    const stated = Object.entries(end?.native ?? {}).filter(isStated)
    const echo =
      stated.length === 0 ? this.#echoText : membersOf({ ...this.#echo, ...Object.fromEntries(stated) })
    return `${head},${echo},"usage":${usage}`
  }

  /** @param wasQueued as background responses were */
  sendBegin(events: EventEncoder, wasQueued: boolean): void {
    const response = replyText(this.members('in_progress'), '[]')
    events.begin(response, wasQueued ? replyText(this.members('queued'), '[]') : response)
  }

  /** @param members as of `replyText` */
  sendFailure(
    events: EventEncoder,
    members: string,
    error: GatewayError | null,
    output: readonly HistoryItem[],
  ): void {
    if (error !== null) events.send('error', errorEventMembers(error))
    events.end('failed', replyText(members, JSON.stringify(toClientItems(output))))
  }

  /** Frames that end the stream if the request failed outside of the response. @param first number of the first one */
  lastFrames(first: number, error: GatewayError, output: readonly HistoryItem[]): string {
    const members = this.members('failed', { error, usage: null })
    return framesOf(first, (events) => this.sendFailure(events, members, error, output))
  }
}

/** A worker states what it used, such as its service tier, and members that the gateway does not know. */
function isStated([name, value]: [name: string, value: unknown]): boolean {
  return value != null && !OWN_MEMBERS.has(name)
}

/** The whole response. @param members JSON text of the others. @param output a JSON array */
export function replyText(members: string, output: string): string {
  return `{${members},"output":${output}}`
}

/** A stored response as clients see it. */
export function storedResponse({ reply, output }: ResponseRecord): JsonObject {
  return { ...reply, output: toClientItems(output) }
}

/**
 * Zeros if the worker reported no usage: clients reject an end without numbers.
 * @param stated as the worker reported it, with further members
 */
export function toWireUsage(usage: GenerationUsage | null, stated?: unknown): JsonObject {
  const all = isObject(stated) ? stated : {}
  const input = usage?.inputTokens ?? 0
  const output = usage?.outputTokens ?? 0
  return {
    ...all,
    input_tokens: input,
    input_tokens_details: {
      ...(isObject(all.input_tokens_details) && all.input_tokens_details),
      cached_tokens: usage?.cachedTokens ?? 0,
      ...(usage !== null && usage.cacheWriteTokens > 0 && { cache_write_tokens: usage.cacheWriteTokens }),
    },
    output_tokens: output,
    output_tokens_details: {
      ...(isObject(all.output_tokens_details) && all.output_tokens_details),
      reasoning_tokens: usage?.reasoningTokens ?? 0,
    },
    total_tokens: input + output,
    ...(usage?.isEstimated && { estimated: true }),
  }
}
