/** The prefill worker's side of a pair: its answer is read to the end, and only its trouble or its log probabilities matter. */

import type { HeaderList, PairCall, UpstreamFailure, UpstreamHandler } from '#kernel'
import { BodyExcerpt } from '#shared'

/** Most of a refusal that is read for the sake of its message. */
export const MAX_REFUSAL_BYTES = 65_536
/** A prefill answer holds one token; this much is one that does not end. With log probabilities it is kept. */
const MAX_ANSWER_BYTES = 67_108_864

/** Whom the leg tells, each at most once, and only one of them. */
export interface PrefillOwner {
  /** @param answer null when nobody wanted it */
  onPrefillDone(answer: { headers: HeaderList; body: Buffer } | null): void
  /** The status says no: nothing good comes any more, but the reason may. */
  onPrefillRefusing(): void
  onPrefillRefused(status: number, headers: HeaderList, body: Buffer): void
  onPrefillBroken(failure: UpstreamFailure): void
  onPrefillTooLong(): void
}

export class PrefillLeg implements UpstreamHandler {
  readonly #pair: PairCall
  readonly #owner: PrefillOwner
  readonly #isWanted: boolean
  #status = 0
  #headers: HeaderList = []
  #excerpt: BodyExcerpt
  #byteCount = 0

  /** @param isWanted the answer is given to the owner */
  constructor(pair: PairCall, owner: PrefillOwner, isWanted: boolean) {
    this.#pair = pair
    this.#owner = owner
    this.#isWanted = isWanted
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
    if (this.#isWanted || this.#isRefusal) this.#excerpt.push(chunk)
    if (this.#isRefusal && this.#excerpt.isFull) this.#refused()
    else if (this.#byteCount > MAX_ANSWER_BYTES) this.#owner.onPrefillTooLong()
  }

  onResponseEnd(): void {
    if (this.#isRefusal) {
      this.#refused()
      return
    }
    this.#pair.prefillSucceeded()
    const answer = this.#isWanted ? { headers: this.#headers, body: this.#excerpt.bytes() } : null
    this.#owner.onPrefillDone(answer)
  }

  onResponseError(failure: UpstreamFailure): void {
    // The status was the answer; its words are lost.
    if (this.#isRefusal) this.#refused()
    else this.#owner.onPrefillBroken(failure)
  }

  #refused(): void {
    this.#owner.onPrefillRefused(this.#status, this.#headers, this.#excerpt.bytes())
  }
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}
