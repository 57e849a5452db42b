/** Counts the tokens of streams whose usage the worker did not report. Set with `Upstream.estimateUsage`. */

export interface UnreportedStream {
  /** Canonical id. */
  readonly model: string
  /** Endpoint of the route, such as `chat`, whose format the body has. */
  readonly endpoint: string
  /** The client's request; null for one that was too large to be kept. */
  readonly body: Buffer | null
  /** Text that the client has received, or its beginning. */
  readonly text: string
}

export interface StreamCount {
  /** Null if the prompt of the request cannot be counted. */
  readonly input: number | null
  /** Tokens of the text. */
  readonly output: number
}

export interface UsageEstimator {
  /** True if a tokenizer of the model is loaded. @param model canonical */
  covers(model: string): boolean
  /** Never rejects. @returns null if the text cannot be counted, or too many streams are being counted */
  count(stream: UnreportedStream): Promise<StreamCount | null>
}
