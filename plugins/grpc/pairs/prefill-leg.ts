/** The prefill half: its messages are read for what it hands over, and nothing else of them matters. */
import type { PairCall, UpstreamFailure, UpstreamHandler } from '#kernel'
import type { Runtime } from '../runtimes/runtime.ts'

export interface PrefillOwner {
  /** @param transferJson null when nothing is handed over */
  onPrefillDone(transferJson: string | null): void
  onPrefillBroken(failure: UpstreamFailure): void
}

export class PrefillLeg implements UpstreamHandler {
  readonly #pair: PairCall
  readonly #runtime: Runtime
  readonly #owner: PrefillOwner
  #transferJson: string | null = null

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
      this.#transferJson = this.#runtime.readReply(message).transferJson ?? this.#transferJson
    } catch {
      // Without what it says the decode engine computes the prompt itself.
    }
  }

  onResponseEnd(): void {
    this.#pair.prefillSucceeded()
    this.#owner.onPrefillDone(this.#transferJson)
  }

  onResponseError(failure: UpstreamFailure): void {
    this.#owner.onPrefillBroken(failure)
  }
}
