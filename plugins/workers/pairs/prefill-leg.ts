/** The prefill side of a pair: reads the whole response, of which only failures and log probabilities are used. */

import { type HeaderList, type PairCall, UpstreamFailure, type UpstreamHandler } from '#kernel'
import { BodyExcerpt, isSuccess } from '#shared'

/** Longest part of an error response that is read for its message. */
export const MAX_REFUSAL_BYTES = 65_536
/** Limit of the prefill response, which is retained if log probabilities are requested. */
const MAX_ANSWER_BYTES = 67_108_864

/** Receives the outcome of the prefill request. */
export interface PrefillOwner {
  /** @param answer null unless requested */
  onPrefillDone(answer: { headers: HeaderList; body: Buffer } | null): void
  /** The status is an error; its message may follow. */
  onPrefillRefusing(): void
  onPrefillRefused(status: number, headers: HeaderList, body: Buffer): void
  onPrefillBroken(failure: UpstreamFailure): void
}

export class PrefillLeg implements UpstreamHandler {
  readonly #pair: PairCall
  readonly #owner: PrefillOwner
  readonly #keepsResponse: boolean
  #status = 0
  #headers: HeaderList = []
  #excerpt: BodyExcerpt
  #byteCount = 0

  /** @param keepsResponse whether the owner needs the response */
  constructor(pair: PairCall, owner: PrefillOwner, keepsResponse: boolean) {
    this.#pair = pair
    this.#owner = owner
    this.#keepsResponse = keepsResponse
    this.#excerpt = new BodyExcerpt(MAX_ANSWER_BYTES)
  }

  get #isRefusal(): boolean {
    return this.#status !== 0 && !isSuccess(this.#status)
  }

  onResponseStart(status: number, headers: HeaderList): void {
    this.#status = status
    this.#headers = headers
    this.#pair.prefillAnswered(status)
    if (isSuccess(status)) return
    this.#excerpt = new BodyExcerpt(MAX_REFUSAL_BYTES)
    this.#owner.onPrefillRefusing()
  }

  onResponseData(chunk: Buffer): void {
    this.#byteCount += chunk.length
    if (this.#keepsResponse || this.#isRefusal) this.#excerpt.push(chunk)
    if (this.#isRefusal && this.#excerpt.isFull) this.#legRefused()
    else if (this.#byteCount > MAX_ANSWER_BYTES)
      this.#owner.onPrefillBroken(
        new UpstreamFailure('protocol', 'the prefill response exceeds its size limit', true),
      )
  }

  onResponseEnd(): void {
    if (this.#isRefusal) {
      this.#legRefused()
      return
    }
    this.#pair.prefillSucceeded()
    const answer = this.#keepsResponse ? { headers: this.#headers, body: this.#excerpt.bytes() } : null
    this.#owner.onPrefillDone(answer)
  }

  onResponseError(failure: UpstreamFailure): void {
    // The status is known, only its message is lost.
    if (this.#isRefusal) this.#legRefused()
    else this.#owner.onPrefillBroken(failure)
  }

  #legRefused(): void {
    this.#owner.onPrefillRefused(this.#status, this.#headers, this.#excerpt.bytes())
  }
}
