/** Usage that the worker has not reported: of streams that were cancelled or broke off, and of workers without counts. */
import type { OpenCall } from '../contracts/call.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { TokenUsage } from '../contracts/request.ts'
import type { ObservedEnd, ResponseFormat } from '../contracts/response-format.ts'
import type { StreamCount, UsageEstimator } from '../contracts/upstream.ts'
import type { StreamedText } from './streamed-text.ts'

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
