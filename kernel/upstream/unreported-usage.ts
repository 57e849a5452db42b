/** Usage that the worker has not reported: of streams that were cancelled or broke off, and of workers without counts. */
import type { OpenCall } from '../contracts/call.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { TokenUsage } from '../contracts/request.ts'
import type { ObservedEnd, ResponseFormat } from '../contracts/response-format.ts'
import type { StreamCount, UsageEstimator } from '../contracts/upstream.ts'

/** Longest body that is kept until the end of a stream. */
const MAX_BODY_BYTES = 1_048_576
const BYTES_PER_TOKEN = 4

/** The estimator, if it can count the stream of this request. */
export function estimatorFor(ctx: RelayContext, estimator: UsageEstimator | null): UsageEstimator | null {
  return estimator?.covers(ctx.model ?? '') === true ? estimator : null
}

/** A response in parts whose usage is counted. */
export interface CountedParts {
  /** Size of the request's body, for the estimate of its prompt. */
  readonly requestBytes: number
  /** As `ResponseFormat.hasOutput`. */
  readonly hasOutput: boolean
  /** Null without a tokenizer of the model. */
  readonly estimator: UsageEstimator | null
  /** What the estimator counts; null if it counts nothing. */
  readonly text: StreamedText | null
}

/** True if the estimator needs the body at the end of the stream. */
export function keepsBody(ctx: RelayContext, counts: CountedParts | null): boolean {
  return counts !== null && counts.text !== null && ctx.rawBody.length <= MAX_BODY_BYTES
}

/** Counts what the worker has reported of a response that has ended, and estimates what it has not. */
export function countParts(
  call: OpenCall,
  ctx: RelayContext,
  { requestBytes, hasOutput, estimator, text }: CountedParts,
  { usage: reported, hasOutputUsage, outputEvents, unreadBytes }: ObservedEnd,
): void {
  if (unreadBytes === 0 && (hasOutputUsage || outputEvents === 0)) {
    if (reported !== null) call.used(reported)
    return
  }
  const estimate: TokenUsage = {
    // Messages streams report the input at their beginning.
    input: reported?.input || Math.ceil(requestBytes / BYTES_PER_TOKEN),
    output: hasOutput
      ? Math.max(outputEvents + Math.ceil(unreadBytes / BYTES_PER_TOKEN), reported?.output ?? 0)
      : 0,
    cached: reported?.cached ?? 0,
    reasoning: 0,
    breakdown: reported?.breakdown,
    isEstimated: true,
  }
  const body = ctx.bodyBytes
  const unreported = {
    model: ctx.model ?? '',
    endpoint: ctx.route.endpoint ?? '',
    body: body.length === 0 ? null : body,
  }
  const count = (text: string) => estimator?.count({ ...unreported, text }) ?? Promise.resolve(null)
  addEstimate(call, estimate, { text, count, input: reported?.input ?? 0 })
}

/** Estimates the usage of a body without counts, so that no served request counts nothing. @param bodyBytes of the response so far */
export function estimatedUsage(
  { hasOutput }: ResponseFormat,
  requestBytes: number,
  bodyBytes: number,
): TokenUsage {
  return {
    input: Math.ceil(requestBytes / BYTES_PER_TOKEN),
    output: hasOutput === false ? 0 : Math.ceil(bodyBytes / BYTES_PER_TOKEN),
    cached: 0,
    reasoning: 0,
    isEstimated: true,
  }
}

/** What an estimate is replaced by. */
export interface EstimatedStream {
  /** Null if no tokenizer of the model is loaded. */
  readonly text: StreamedText | null
  /** Counts a text, and the prompt of its stream. Never rejects. */
  readonly count: (text: string) => Promise<StreamCount | null>
  /** Input that the worker has reported; 0 if it has not. */
  readonly input: number
}

/** Adds an estimate to the usage of a call, and replaces it by the count of the text. */
export function addEstimate(call: OpenCall, estimate: TokenUsage, stream: EstimatedStream): void {
  const { text, count, input: reportedInput } = stream
  if (text === null) {
    call.used(estimate)
    return
  }
  const { scale } = text
  const exact = count(text.text()).then((counted): TokenUsage => {
    if (counted === null) return estimate
    const input = reportedInput || counted.input
    return {
      input: input ?? estimate.input,
      output: Math.round(counted.output * scale),
      cached: estimate.cached,
      reasoning: 0,
      ...((input === null || scale > 1) && { isEstimated: true }),
    }
  })
  call.estimated(estimate, exact)
}

/** Bytes of a stream that are kept; the tokens of a longer one are extrapolated. */
const MAX_KEPT_BYTES = 262_144
/** Kept of every stream. */
const FIRST_BYTES = 4_096
/** Beyond this total of all streams of the thread, a stream keeps what it has. */
const MAX_HELD_BYTES = 67_108_864
let heldBytes = 0

/** The beginning of a stream, within a limit for all streams of the thread; its text is read at the end. @hot */
export class StreamedText {
  readonly #read: (kept: Buffer) => string
  #kept = Buffer.allocUnsafe(FIRST_BYTES)
  #keptBytes = 0
  #totalBytes = 0
  /** Bytes of this stream in `heldBytes`. */
  #heldBytes = 0
  #isFull = false

  /** @param read reads the text from what was kept */
  constructor(read: (kept: Buffer) => string) {
    this.#read = read
  }

  push(chunk: Buffer): void {
    this.#totalBytes += chunk.length
    if (this.#isFull) return
    const wanted = Math.min(chunk.length, MAX_KEPT_BYTES - this.#keptBytes)
    if (this.#keptBytes + wanted > this.#kept.length) this.#grow(this.#keptBytes + wanted)
    const bytes = Math.min(wanted, this.#kept.length - this.#keptBytes)
    chunk.copy(this.#kept, this.#keptBytes, 0, bytes)
    this.#keptBytes += bytes
  }

  /** Appends text in UTF-8. */
  write(text: string): void {
    const bytes = Buffer.byteLength(text)
    this.#totalBytes += bytes
    if (this.#isFull) return
    const wanted = this.#keptBytes + bytes
    if (wanted > this.#kept.length) this.#grow(wanted)
    this.#keptBytes += this.#kept.write(text, this.#keptBytes)
    // Nothing may follow a text that was cut.
    if (wanted > this.#keptBytes) this.#isFull = true
  }

  /** Does nothing if the thread holds too much. */
  #grow(needed: number): void {
    const size = Math.min(MAX_KEPT_BYTES, Math.max(needed, 2 * this.#kept.length))
    if (heldBytes - this.#heldBytes + size > MAX_HELD_BYTES) {
      this.#isFull = true
      return
    }
    heldBytes += size - this.#heldBytes
    this.#heldBytes = size
    const grown = Buffer.allocUnsafe(size)
    this.#kept.copy(grown, 0, 0, this.#keptBytes)
    this.#kept = grown
  }

  /** Nothing more is pushed or read. */
  release(): void {
    heldBytes -= this.#heldBytes
    this.#heldBytes = 0
    this.#isFull = true
  }

  /** Bytes of the stream per kept byte; 1 for a stream that was kept completely. */
  get scale(): number {
    return this.#totalBytes / this.#keptBytes
  }

  text(): string {
    return this.#read(this.#kept.subarray(0, this.#keptBytes))
  }
}
