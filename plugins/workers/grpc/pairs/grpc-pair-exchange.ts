/**
 * The exchange with both engines of a pair, which appears as one with the decode engine. Sends both requests at once if the
 * engines connect by a bootstrap address, or decode after prefill if the gateway relays the transfer parameters.
 */
import {
  defineErrors,
  type Exchange,
  type GatewayError,
  type HeaderList,
  type LegFault,
  type PairCall,
  type PairHandler,
  type PairLeg,
  type PromptLogprob,
  toUpstreamError,
  type UpstreamFailure,
  type UpstreamHandler,
  type UpstreamRequest,
} from '#kernel'
import type { PairTimes } from '#shared'
import type { EngineRequest, Runtime } from '../runtimes/runtime.ts'

export interface PairSteps {
  readonly runtime: Runtime
  readonly prefill: UpstreamRequest
  /** A request sent at once, or built from the transfer parameters of the prefill response. */
  readonly decode: UpstreamRequest | ((transferJson: string | null) => UpstreamRequest)
  /** Receives the prompt log probabilities of prefill, for which the decode response waits; null if not requested. */
  readonly awaited: EngineRequest['prefilled']
}

export class GrpcPairExchange implements Exchange, UpstreamHandler {
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
  /** The decode engine is running, but its response is not read yet. */
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
    const { prefill, decode, awaited } = this.#steps
    this.#isHeld = awaited !== null
    this.#prefill = this.#pair.open('prefill', prefill, this.#prefillHandler())
    if (typeof decode !== 'function') this.#openDecode(decode)
  }

  #openDecode(request: UpstreamRequest): void {
    this.#decode = this.#pair.open('decode', request, this)
    if (this.#isPaused || this.#isHeld) this.#decode.pause()
  }

  #prefillHandler(): UpstreamHandler {
    const result: PrefillResult = { transferJson: null, promptLogprobs: null }
    return {
      onResponseStart: (status) => this.#pair.prefillAnswered(status),
      onResponseData: (message) => {
        try {
          const { transferJson, promptLogprobs } = this.#steps.runtime.readResponse(message)
          result.transferJson = transferJson ?? result.transferJson
          result.promptLogprobs = promptLogprobs ?? result.promptLogprobs
        } catch {
          // Without transfer parameters, the decode engine computes the prompt itself.
        }
      },
      onResponseEnd: () => {
        this.#pair.prefillSucceeded()
        this.#prefillDone(result)
      },
      onResponseError: (failure) => this.#prefillBroken(failure),
    }
  }

  #prefillDone({ transferJson, promptLogprobs }: PrefillResult): void {
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

  /** Ignored once the decode engine has started to respond. */
  #prefillBroken(failure: UpstreamFailure): void {
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

/** Result of the prefill response; null for absent values. */
interface PrefillResult {
  transferJson: string | null
  promptLogprobs: readonly PromptLogprob[] | null
}

const failed = (leg: PairLeg) => ({
  kind: 'bad_gateway' as const,
  source: 'worker' as const,
  text: (why: string) => `the ${leg} worker failed: ${why}`,
})

export const pairErrors = defineErrors('grpc pairs', {
  prefill_worker_failed_to_start: failed('prefill'),
  decode_worker_failed_to_start: failed('decode'),
  runtime_pd_not_supported: {
    kind: 'bad_request',
    source: 'gateway',
    text: (runtime: string) => `${runtime} engines do not support prefill/decode pairs`,
  },
  pd_runtimes_differ: {
    kind: 'unavailable',
    source: 'gateway',
    retry: 'before-first-byte',
    text: (prefill: string, decode: string) => `a ${prefill} engine cannot prefill for a ${decode} engine`,
  },
})

/** Keeps the status that the failure would have without a pair. */
function toLegFault(leg: PairLeg, failure: UpstreamFailure): LegFault {
  const own: GatewayError = failure.error ?? toUpstreamError(failure, false)
  const make =
    leg === 'prefill' ? pairErrors.prefill_worker_failed_to_start : pairErrors.decode_worker_failed_to_start
  const error = make.with({ status: own.status, cause: failure }, own.message)
  // An engine status decides itself whether the request may be retried.
  if (failure.error === null) return { leg, error, status: 0, headers: null, failure }
  return { leg, error, status: own.status, headers: null, failure: null }
}
