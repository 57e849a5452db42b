/** Converts the messages of an engine to generation events. @hot */
import type { EngineAttempt, EngineReader, EngineSink, GenerationUsage, OutputSink } from '#kernel'
import { grpcErrors } from '../errors.ts'
import type { EngineOutput, EngineRequest, Runtime } from '../runtimes/runtime.ts'
import { ChoiceReader } from './choice-reader.ts'
import type { EnginePrompt } from './prompt.ts'

export interface ReaderOptions {
  readonly runtime: Runtime
  readonly prompt: EnginePrompt
  /** Omits special tokens from the text. */
  readonly skipsSpecialTokens: boolean
  /** The engine applies the constraint after the reasoning only. */
  readonly constraintWaits: boolean
  /** Stop token ids sent to the engine. */
  readonly sentStopIds: readonly number[]
  /** Prompt data of the prefill worker of a pair; null if not requested. */
  readonly prefilled: EngineRequest['prefilled']
  /** Response id chosen by the client; null uses the gateway's. */
  readonly name: string | null
}

export class GenerateReader implements EngineReader {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #options: ReaderOptions
  readonly #choices: ChoiceReader[] = []
  #hasStarted = false
  #isOver = false
  #promptTokens = 0
  #cachedTokens = 0

  constructor(attempt: EngineAttempt, sink: EngineSink, options: ReaderOptions) {
    this.#attempt = attempt
    this.#sink = sink
    this.#options = options
  }

  onStart(): void {}

  onData(message: Buffer): void {
    if (this.#isOver) return
    let response: EngineOutput
    try {
      response = this.#options.runtime.readResponse(message)
    } catch (error) {
      this.#isOver = true
      this.#sink.fail(grpcErrors.engine_message_unreadable.with({ cause: error }, (error as Error).message))
      return
    }
    this.#take(response)
  }

  #take(response: EngineOutput): void {
    if (response.promptTokens > this.#promptTokens) this.#promptTokens = response.promptTokens
    if (response.cachedTokens > this.#cachedTokens) this.#cachedTokens = response.cachedTokens
    if (!this.#hasStarted) this.#start(response)
    const choice = this.#completeResponse(response)
    if (choice === null || choice.hasEnded) return
    if (response.isComplete && choice.hasChunks) this.#complete(choice, response)
    else if (choice.hasStopped) this.#chunk(choice, response, true)
    else this.#decode(choice, response, 0)
  }

  /** Decodes a large message in slices, each in a turn of its own. */
  #decode(choice: ChoiceReader, response: EngineOutput, from: number): void {
    const next = choice.take(response, from)
    if (next < response.tokenIds.length) this.#sink.defer(() => this.#decode(choice, response, next))
    else if (response.isComplete) this.#complete(choice, response)
    else this.#chunk(choice, response, false)
  }

  #chunk(choice: ChoiceReader, response: EngineOutput, goesOnAfterStop: boolean): void {
    choice.hasChunks = true
    if (this.#options.runtime.countsByMessage) choice.completionTokens += response.completionTokens
    else choice.completionTokens = response.completionTokens
    if (response.reasoningTokens > 0) choice.reasoningTokens = response.reasoningTokens
    // An engine that knows the stop reports it in its next message; one that continues does not know it.
    if (choice.hasStopped && (goesOnAfterStop || choice.hasExceeded || !this.#engineKnows(choice))) {
      choice.end('stop', null)
      this.#finishIfDone(true)
    }
  }

  #complete(choice: ChoiceReader, response: EngineOutput): void {
    if (!choice.hasChunks || !this.#options.runtime.countsByMessage)
      choice.completionTokens = response.completionTokens
    if (response.reasoningTokens > 0) choice.reasoningTokens = response.reasoningTokens
    choice.end(response.finishReason, response.matchedStop)
    this.#finishIfDone(choice.hasExceeded)
  }

  #engineKnows(choice: ChoiceReader): boolean {
    if (typeof choice.matchedStop === 'number') return true
    const { runtime, sentStopIds } = this.#options
    return runtime.stopStrings === 'supported' || sentStopIds.includes(choice.lastId)
  }

  onEnd(): void {
    if (this.#isOver || this.#choices.length === 0) return
    // Choices stopped by the gateway are complete.
    for (const choice of this.#choices) if (choice.hasStopped) choice.end('stop', null)
    if (this.#choices.every(({ hasEnded }) => hasEnded)) this.#finish()
  }

  /** @param isEarly the engine has not finished */
  #finishIfDone(isEarly: boolean): void {
    if (this.#choices.length < this.#attempt.request.choices) return
    for (const choice of this.#choices) if (!choice.hasEnded) return
    this.#finish()
    if (isEarly) this.#sink.stop()
  }

  #finish(): void {
    this.#isOver = true
    this.#sink.emit({ type: 'finished', usage: this.usage() })
  }

  usage(): GenerationUsage {
    let outputTokens = 0
    let reasoningTokens = 0
    for (const choice of this.#choices) {
      outputTokens += choice.completionTokens
      reasoningTokens += choice.reasoningTokens
    }
    return {
      inputTokens: this.#promptTokens || this.#options.prompt.tokenIds.length,
      cachedTokens: this.#cachedTokens,
      cacheWriteTokens: 0,
      outputTokens,
      reasoningTokens,
    }
  }

  /** Some engines give all choices of a non-streamed response the same index: then their order decides. */
  #completeResponse({ index, isComplete }: EngineOutput): ChoiceReader | null {
    const most = this.#attempt.request.choices
    const isAlike = isComplete && !this.#attempt.stream && this.#choices[index]?.hasEnded === true
    const place = isAlike ? this.#choices.length : index
    if (place >= most) return null
    for (let next = this.#choices.length; next <= place; next++) this.#choices.push(this.#open(next))
    return this.#choices[place]
  }

  #open(index: number): ChoiceReader {
    const { prompt, skipsSpecialTokens } = this.#options
    const { request } = this.#attempt
    const { sampling } = request
    const { parser, tokenizer } = prompt
    const { constraintWaits } = this.#options
    const stopIds =
      sampling.ignoreEos === true ? prompt.stopTokenIds : tokenizer.eosIds.concat(prompt.stopTokenIds)
    return new ChoiceReader(index, this.#sink, {
      tokenizer,
      decoder: tokenizer.openDecoder({
        skipSpecialTokens: skipsSpecialTokens,
        isContinuation: request.prompt.kind !== 'chat' || request.continuesLastMessage === true,
        stops: sampling.stop,
        stopIds,
        includeStop: sampling.includesStop,
      }),
      open: parser === null ? null : (sink: OutputSink) => parser.open(sink, { constraintWaits }),
      topLogprobs: request.topLogprobs,
      wantsTokenIds: request.wantsTokenIds === true,
      maxTokens: sampling.maxTokens ?? Number.POSITIVE_INFINITY,
    })
  }

  #start({ promptLogprobs }: EngineOutput): void {
    this.#hasStarted = true
    const { model, worker } = this.#attempt
    const { prefilled } = this.#options
    this.#sink.emit({
      type: 'started',
      id: this.#options.name,
      model,
      createdAtSec: Math.floor(Date.now() / 1000),
      inputTokens: this.#promptTokens || this.#options.prompt.tokenIds.length,
      systemFingerprint: worker.labels.weight_version || 'default',
      promptLogprobs: prefilled === null ? null : (prefilled.promptLogprobs ?? promptLogprobs),
      worker,
    })
  }
}
