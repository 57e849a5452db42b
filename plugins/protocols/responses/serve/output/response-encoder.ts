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
import { type EventEncoder, framesOf } from './event-encoder.ts'

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
  /** JSON of it, never of an empty object. */
  readonly #echoText: string

  /** @param echo members that repeat the request */
  constructor({ id, createdAtSec }: { id: string; createdAtSec: number }, echo: JsonObject) {
    this.#id = id
    this.#createdAtSec = createdAtSec
    this.#echo = echo
    this.#echoText = JSON.stringify(echo)
  }

  /** JSON of all but the output. @param end undefined until the response has ended */
  members(status: ResponseStatus, end?: ResponseEnd): string {
    const error = end?.error ?? (status === 'failed' ? answerErrors.worker_aborted() : null)
    const reason = end?.incompleteReason ?? null
    const { warnings = [] } = end ?? {}
    const head = JSON.stringify({
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
    const echo = end?.native === undefined ? this.#echoText : JSON.stringify(this.#echoWith(end.native))
    return `${head.slice(0, -1)},${echo.slice(1, -1)},"usage":${usage}}`
  }

  /** A worker reports what it used, such as its service tier, and members that the gateway does not know. */
  #echoWith(native: NativeObject): JsonObject {
    const stated = Object.entries(native).filter(([name, value]) => value != null && !OWN_MEMBERS.has(name))
    return { ...this.#echo, ...Object.fromEntries(stated) }
  }

  /** @param wasQueued as background responses were */
  sendBegin(events: EventEncoder, wasQueued: boolean): void {
    const response = replyText(this.members('in_progress'), '[]')
    events.begin(response, wasQueued ? replyText(this.members('queued'), '[]') : response)
  }

  /** @param members JSON of all but the output */
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

/** The whole response. @param members a JSON object, never empty. @param output a JSON array */
export function replyText(members: string, output: string): string {
  return `${members.slice(0, -1)},"output":${output}}`
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
