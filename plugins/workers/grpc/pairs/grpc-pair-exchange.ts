/**
 * The exchange with both engines of a pair, seen from outside as one with the decode engine: both at once where they meet
 * by themselves, one after the other where the gateway carries what is handed over.
 */

import type {
  Exchange,
  HeaderList,
  PairCall,
  PairHandler,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamRequest,
} from '#kernel'
import type { PairTimes } from '#shared'
import type { Ask, Runtime } from '../runtimes/runtime.ts'
import { toLegFault } from './pair-faults.ts'
import { type Prefilled, PrefillLeg, type PrefillOwner } from './prefill-leg.ts'

export interface PairSteps {
  readonly runtime: Runtime
  readonly prefill: UpstreamRequest
  /** Null: at once; otherwise the request is made of what the prefill engine has said. */
  readonly decode: UpstreamRequest | ((transferJson: string | null) => UpstreamRequest)
  /** Where the prefill engine's words about the prompt go, for which decode's answer waits; null: nobody wants them. */
  readonly awaited: Ask['prefilled']
}

export class GrpcPairExchange implements Exchange, UpstreamHandler, PrefillOwner {
  readonly #pair: PairCall
  readonly #steps: PairSteps
  readonly #handler: PairHandler
  readonly #times: PairTimes
  readonly #startedAtMs = performance.now()
  #prefill: Exchange | null = null
  #decode: Exchange | null = null
  #isPrefillOver = false
  #hasStarted = false
  #isPaused = false
  /** The decode engine works, but its answer is not read yet. */
  #isHeld = false
  #isOver = false
  #hasFirstMessage = false

  constructor(pair: PairCall, steps: PairSteps, handler: PairHandler, times: PairTimes) {
    this.#times = times
    this.#pair = pair
    this.#steps = steps
    this.#handler = handler
  }

  start(): void {
    const { runtime, prefill, decode, awaited } = this.#steps
    this.#isHeld = awaited !== null
    this.#prefill = this.#pair.open('prefill', prefill, new PrefillLeg(this.#pair, runtime, this))
    if (typeof decode !== 'function') this.#openDecode(decode)
  }

  #openDecode(request: UpstreamRequest): void {
    this.#decode = this.#pair.open('decode', request, this)
    if (this.#isPaused || this.#isHeld) this.#decode.pause()
  }

  onPrefillDone({ transferJson, promptLogprobs }: Prefilled): void {
    this.#isPrefillOver = true
    const endedAtMs = performance.now()
    this.#times.prefill.observe((endedAtMs - this.#startedAtMs) / 1000)
    const { decode, awaited } = this.#steps
    if (awaited !== null) awaited.promptLogprobs = promptLogprobs
    this.#release()
    if (this.#isOver || typeof decode !== 'function') return
    this.#openDecode(decode(transferJson))
    this.#times.transfer.observe((performance.now() - endedAtMs) / 1000)
  }

  #release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    if (!this.#isPaused) this.#decode?.resume()
  }

  /** Once the decode engine speaks it has all that it needs. */
  onPrefillBroken(failure: UpstreamFailure): void {
    this.#isPrefillOver = true
    if (this.#isOver || this.#hasStarted) return
    this.abort()
    this.#handler.onLegFailed(toLegFault('prefill', failure))
  }

  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    this.#hasStarted = true
    this.#handler.onResponseStart(status, headers, contentLength)
  }

  onResponseData(message: Buffer): void {
    if (!this.#hasFirstMessage) {
      this.#hasFirstMessage = true
      this.#times.firstToken.observe((performance.now() - this.#startedAtMs) / 1000)
    }
    this.#handler.onResponseData(message)
  }

  onResponseEnd(): void {
    this.#isOver = true
    this.#handler.onResponseEnd()
  }

  onResponseError(failure: UpstreamFailure): void {
    if (this.#isOver) return
    this.#isOver = true
    if (!this.#isPrefillOver) this.#prefill?.abort()
    if (this.#hasStarted) this.#handler.onResponseError(failure)
    else this.#handler.onLegFailed(toLegFault('decode', failure))
  }

  pause(): void {
    this.#isPaused = true
    this.#decode?.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isHeld) this.#decode?.resume()
  }

  abort(): void {
    this.#isOver = true
    this.#prefill?.abort()
    this.#decode?.abort()
  }
}
