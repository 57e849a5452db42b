/** The prefill half: its messages are read for what it hands over, and nothing else of them matters. */
import type { PairCall, PromptLogprob, UpstreamFailure, UpstreamHandler } from '#kernel'
import type { Runtime } from '../runtimes/runtime.ts'

/** What the prefill engine has said; null for what it has not. */
export interface Prefilled {
  transferJson: string | null
  promptLogprobs: readonly PromptLogprob[] | null
}

export interface PrefillOwner {
  onPrefillDone(prefilled: Prefilled): void
  onPrefillBroken(failure: UpstreamFailure): void
}

export class PrefillLeg implements UpstreamHandler {
  readonly #pair: PairCall
  readonly #runtime: Runtime
  readonly #owner: PrefillOwner
  readonly #prefilled: Prefilled = { transferJson: null, promptLogprobs: null }

  constructor(pair: PairCall, runtime: Runtime, owner: PrefillOwner) {
    this.#pair = pair
    this.#runtime = runtime
    this.#owner = owner
  }

  onResponseStart(status: number): void {
    this.#pair.prefillAnswered(status)
  }

  onResponseData(message: Buffer): void {
    try {
      const { transferJson, promptLogprobs } = this.#runtime.readReply(message)
      if (transferJson !== null) this.#prefilled.transferJson = transferJson
      if (promptLogprobs !== null) this.#prefilled.promptLogprobs = promptLogprobs
    } catch {
      // Without what it says the decode engine computes the prompt itself.
    }
  }

  onResponseEnd(): void {
    this.#pair.prefillSucceeded()
    this.#owner.onPrefillDone(this.#prefilled)
  }

  onResponseError(failure: UpstreamFailure): void {
    this.#owner.onPrefillBroken(failure)
  }
}
