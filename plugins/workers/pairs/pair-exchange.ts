/**
 * The exchange with both workers of a pair, which appears as one with the decode worker. The decode response is held until
 * the prefill worker has finished, so that a failure of either can still become an error status or be retried.
 */

import {
  type Exchange,
  type HeaderList,
  type PairCall,
  type PairHandler,
  type PairLeg,
  type PairRequests,
  toUpstreamError,
  UpstreamFailure,
  type UpstreamHandler,
} from '#kernel'
import { BodyExcerpt, isSuccess, type PairTimes } from '#shared'
import { wantsPromptLogprobs } from './bootstrap.ts'
import { errorMessageIn, pairErrors, toLegError } from './errors.ts'
import { type LogprobMerge, openMerge } from './merge-logprobs.ts'

/** Longest JSON response that is held for merging. */
const MAX_HELD_BYTES = 67_108_864
/** Longest part of an error response that is read for its message. */
const MAX_REFUSAL_BYTES = 65_536
/** Limit of the prefill response, which is retained if log probabilities are requested. */
const MAX_PREFILL_BYTES = 67_108_864

interface PrefillAnswer {
  readonly headers: HeaderList
  readonly body: Buffer
}

interface Head {
  readonly status: number
  readonly headers: HeaderList
  readonly contentLength: number
}

export class PairExchange implements Exchange, UpstreamHandler {
  readonly #pair: PairCall
  readonly #handler: PairHandler
  readonly #times: PairTimes
  readonly #startedAtMs = performance.now()
  #prefill: Exchange | null = null
  #decode: Exchange | null = null
  #isOver = false
  #isPrefillDone = false
  #prefillAnswer: PrefillAnswer | null = null
  /** Head of the decode response; null until it arrives. */
  #head: Head | null = null
  /** Decode response data that arrived too early; null once the response is forwarded. */
  #held: Buffer[] | null = []
  #hasEndedWhileHeld = false
  #isPausedByClient = false
  /** Body of an error response of the decode worker. */
  #refusal: BodyExcerpt | null = null
  #merge: LogprobMerge | null = null
  /** Decode response bytes passed to the merge. */
  #mergeBytes = 0
  #hasFirstByte = false

  constructor(pair: PairCall, handler: PairHandler, times: PairTimes) {
    this.#pair = pair
    this.#handler = handler
    this.#times = times
  }

  /**
   * Sends both requests at once.
   *
   * @param requests not retained, so that a long stream does not hold two bodies
   * @throws unsupported_connection_mode (501); then nothing was sent
   */
  start(requests: PairRequests): void {
    const prefillHandler = this.#prefillHandler(wantsPromptLogprobs(requests.prefill.body))
    this.#prefill = this.#pair.open('prefill', requests.prefill, prefillHandler)
    this.#decode = this.#pair.open('decode', requests.decode, this)
  }

  pause(): void {
    this.#isPausedByClient = true
    this.#decode?.pause()
  }

  resume(): void {
    this.#isPausedByClient = false
    if (this.#held === null) this.#decode?.resume()
  }

  abort(): void {
    this.#isOver = true
    this.#prefill?.abort()
    this.#decode?.abort()
  }

  /**
   * Reads the whole response, of which only failures and log probabilities are used.
   * @param keepsResponse whether log probabilities are requested
   */
  #prefillHandler(keepsResponse: boolean): UpstreamHandler {
    let status = 0
    let headers: HeaderList = []
    let byteCount = 0
    let isRefusal = false
    let excerpt = new BodyExcerpt(MAX_PREFILL_BYTES)
    const refused = () => this.#legRefused('prefill', status, headers, excerpt.bytes())
    return {
      onResponseStart: (given, list) => {
        status = given
        headers = list
        this.#pair.prefillAnswered(status)
        if (isSuccess(status)) return
        // The message of the error may follow.
        isRefusal = true
        excerpt = new BodyExcerpt(MAX_REFUSAL_BYTES)
        this.#decode?.abort()
      },
      onResponseData: (chunk) => {
        byteCount += chunk.length
        if (keepsResponse || isRefusal) excerpt.push(chunk)
        if (isRefusal && excerpt.isFull) refused()
        else if (byteCount > MAX_PREFILL_BYTES) this.#legFailed('prefill', tooLong('prefill'))
      },
      onResponseEnd: () => {
        if (isRefusal) {
          refused()
          return
        }
        this.#pair.prefillSucceeded()
        this.#prefillDone(keepsResponse ? { headers, body: excerpt.bytes() } : null)
      },
      onResponseError: (failure) => {
        // The status is known, only its message is lost.
        if (isRefusal) refused()
        else this.#legFailed('prefill', failure)
      },
    }
  }

  /** @param answer null unless log probabilities are requested */
  #prefillDone(answer: PrefillAnswer | null): void {
    this.#times.prefill.observe((performance.now() - this.#startedAtMs) / 1000)
    this.#isPrefillDone = true
    this.#prefillAnswer = answer
    if (this.#head !== null) this.#startDecodeResponse(this.#head)
  }

  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    this.#head = { status, headers, contentLength }
    if (!isSuccess(status)) {
      this.#refusal = new BodyExcerpt(MAX_REFUSAL_BYTES)
      this.#prefill?.abort()
    } else if (this.#isPrefillDone) this.#startDecodeResponse(this.#head)
    else this.#decode?.pause()
  }

  onResponseData(chunk: Buffer): void {
    if (this.#refusal !== null) {
      this.#refusal.push(chunk)
      if (this.#refusal.isFull) this.#decodeRefused(this.#refusal)
    } else if (this.#held !== null) this.#held.push(Buffer.from(chunk))
    else this.#forward(chunk)
  }

  onResponseEnd(): void {
    if (this.#refusal !== null) this.#decodeRefused(this.#refusal)
    else if (this.#held !== null) this.#hasEndedWhileHeld = true
    else this.#end()
  }

  onResponseError(failure: UpstreamFailure): void {
    if (this.#refusal !== null) this.#decodeRefused(this.#refusal)
    else if (this.#held !== null) this.#legFailed('decode', failure)
    else {
      this.#isOver = true
      this.#handler.onResponseError(failure)
    }
  }

  /** Called once the prefill worker has finished and the decode response has started. */
  #startDecodeResponse({ status, headers, contentLength }: Head): void {
    const held = this.#held ?? []
    this.#held = null
    this.#merge = this.#prefillAnswer === null ? null : openMerge(this.#prefillAnswer, headers)
    this.#prefillAnswer = null
    // The length of a merged JSON response is known only at its end.
    if (this.#merge === null || this.#merge.isStream)
      this.#handler.onResponseStart(status, headers, this.#merge === null ? contentLength : -1)
    for (const chunk of held) {
      if (this.#isOver) return
      this.#forward(chunk)
    }
    if (this.#isOver) return
    if (this.#hasEndedWhileHeld) this.#end()
    else if (!this.#isPausedByClient) this.#decode?.resume()
  }

  #forward(chunk: Buffer): void {
    if (!this.#hasFirstByte) {
      this.#hasFirstByte = true
      this.#times.firstToken.observe((performance.now() - this.#startedAtMs) / 1000)
    }
    if (this.#merge === null) {
      this.#handler.onResponseData(chunk)
      return
    }
    this.#mergeBytes += chunk.length
    if (!this.#merge.isStream && this.#mergeBytes > MAX_HELD_BYTES) {
      this.#legFailed('decode', tooLong('decode'))
      return
    }
    const merged = this.#merge.push(chunk)
    if (merged.length > 0) this.#handler.onResponseData(merged)
  }

  #end(): void {
    if (this.#merge !== null) this.#endMerge(this.#merge)
    if (this.#isOver) return
    this.#isOver = true
    this.#handler.onResponseEnd()
  }

  #endMerge(merge: LogprobMerge): void {
    const rest = merge.end()
    if (!merge.isStream && this.#head !== null)
      this.#handler.onResponseStart(this.#head.status, this.#head.headers, rest.length)
    if (rest.length > 0 && !this.#isOver) this.#handler.onResponseData(rest)
  }

  #decodeRefused(refusal: BodyExcerpt): void {
    if (this.#head !== null)
      this.#legRefused('decode', this.#head.status, this.#head.headers, refusal.bytes())
  }

  #legRefused(leg: PairLeg, status: number, headers: HeaderList, body: Buffer): void {
    const error = toLegError(leg, { status, headers, message: errorMessageIn(body) })
    this.#fail({ leg, error, status, headers, failure: null })
  }

  #legFailed(leg: PairLeg, failure: UpstreamFailure): void {
    const isLimit = failure.kind.endsWith('_timeout')
    const error = isLimit
      ? toUpstreamError(failure, false)
      : pairErrors.pd_request_failed.with({ cause: failure }, leg)
    this.#fail({ leg, error, status: 0, headers: null, failure })
  }

  #fail(fault: Parameters<PairHandler['onLegFailed']>[0]): void {
    if (this.#isOver) return
    this.abort()
    this.#handler.onLegFailed(fault)
  }
}

function tooLong(leg: PairLeg): UpstreamFailure {
  return new UpstreamFailure('protocol', `the ${leg} response exceeds its size limit`, true)
}
