/** Reads an engine's answer, message by message, into the events of a generation. @hot */
import type { EngineAttempt, EngineReader, EngineSink, OutputSink } from '#kernel'
import { grpcErrors } from '../errors.ts'
import type { Ask, EngineReply, Runtime } from '../runtimes/runtime.ts'
import { ChoiceReader } from './choice-reader.ts'
import type { EnginePrompt } from './prompt.ts'

export interface ReaderOptions {
  readonly runtime: Runtime
  readonly prompt: EnginePrompt
  /** Special tokens are left out of the text. */
  readonly skipsSpecialTokens: boolean
  /** The engine starts a constraint only behind the reasoning. */
  readonly constraintWaits: boolean
  /** Ids that the engine was told to stop at. */
  readonly sentStopIds: readonly number[]
  /** What the prefill half of a pair has told of the prompt; null: nothing of it is wanted. */
  readonly prefilled: Ask['prefilled']
  /** Of the reply; null where the gateway's own is used. */
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
    let reply: EngineReply
    try {
      reply = this.#options.runtime.readReply(message)
    } catch (error) {
      this.#isOver = true
      this.#sink.fail(grpcErrors.engine_message_unreadable.with({ cause: error }, (error as Error).message))
      return
    }
    this.#take(reply)
  }

  #take(reply: EngineReply): void {
    if (reply.promptTokens > this.#promptTokens) this.#promptTokens = reply.promptTokens
    if (reply.cachedTokens > this.#cachedTokens) this.#cachedTokens = reply.cachedTokens
    if (!this.#hasStarted) this.#start(reply)
    const choice = this.#choiceOf(reply)
    if (choice === null || choice.hasEnded) return
    if (reply.isComplete) this.#complete(choice, reply)
    else this.#chunk(choice, reply)
  }

  #chunk(choice: ChoiceReader, reply: EngineReply): void {
    const goesOnAfterStop = choice.hasStopped
    choice.hasChunks = true
    if (this.#options.runtime.countsByMessage) choice.completionTokens += reply.completionTokens
    else choice.completionTokens = reply.completionTokens
    if (reply.reasoningTokens > 0) choice.reasoningTokens = reply.reasoningTokens
    if (!goesOnAfterStop) choice.take(reply)
    // An engine that knows the stop says so itself in its next message; one that goes on does not know it.
    if (choice.hasStopped && (goesOnAfterStop || !this.#engineKnows(choice))) {
      choice.end('stop', null)
      this.#finishIfDone(true)
    }
  }

  #complete(choice: ChoiceReader, reply: EngineReply): void {
    if (!choice.hasChunks) {
      choice.take(reply)
      choice.completionTokens = reply.completionTokens
    } else if (!this.#options.runtime.countsByMessage) choice.completionTokens = reply.completionTokens
    if (reply.reasoningTokens > 0) choice.reasoningTokens = reply.reasoningTokens
    choice.end(reply.finishReason, reply.matchedStop)
    this.#finishIfDone(false)
  }

  #engineKnows(choice: ChoiceReader): boolean {
    if (typeof choice.matchedStop === 'number') return true
    const { runtime, sentStopIds } = this.#options
    return runtime.stopStrings === 'takes' || sentStopIds.includes(choice.lastId)
  }

  onEnd(): void {
    if (this.#isOver || this.#choices.length === 0) return
    // What was stopped here has its whole text, whatever the engine did afterwards.
    for (const choice of this.#choices) if (choice.hasStopped) choice.end('stop', null)
    if (this.#choices.every(({ hasEnded }) => hasEnded)) this.#finish()
  }

  /** @param isEarly the engine has not said that it is done */
  #finishIfDone(isEarly: boolean): void {
    if (this.#choices.length < this.#attempt.request.choices) return
    for (const choice of this.#choices) if (!choice.hasEnded) return
    this.#finish()
    if (isEarly) this.#sink.stop()
  }

  #finish(): void {
    this.#isOver = true
    let outputTokens = 0
    let reasoningTokens = 0
    for (const choice of this.#choices) {
      outputTokens += choice.completionTokens
      reasoningTokens += choice.reasoningTokens
    }
    this.#sink.emit({
      type: 'finished',
      usage: {
        inputTokens: this.#promptTokens || this.#options.prompt.tokenIds.length,
        cachedTokens: this.#cachedTokens,
        cacheWriteTokens: 0,
        outputTokens,
        reasoningTokens,
      },
    })
  }

  /** Some engines number the choices of a whole answer all alike: then their order tells them apart. */
  #choiceOf({ index, isComplete }: EngineReply): ChoiceReader | null {
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
    const how = { isWhole: !this.#attempt.stream, constraintWaits: this.#options.constraintWaits }
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
      open: parser === null ? null : (sink: OutputSink) => parser.open(sink, how),
      topLogprobs: request.topLogprobs,
      wantsTokenIds: request.wantsTokenIds === true,
    })
  }

  #start({ promptLogprobs }: EngineReply): void {
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
