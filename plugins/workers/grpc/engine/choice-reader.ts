/** One choice of an answer: ids to text, text through the output parser, what is found to events. @hot */
import type {
  EngineSink,
  FinishReason,
  IdLogprob,
  LoadedTokenizer,
  OutputSink,
  OutputStream,
  TokenDecoder,
  TokenLogprob,
} from '#kernel'
import type { EngineReply, TopTokens } from '../runtimes/runtime.ts'
import { tokenText } from './token-texts.ts'

export interface ChoiceOptions {
  readonly tokenizer: LoadedTokenizer
  readonly decoder: TokenDecoder
  /** Null where the output is text and nothing else. */
  readonly open: ((sink: OutputSink) => OutputStream) | null
  /** Alternatives a token; null: no log probabilities. */
  readonly topLogprobs: number | null
  readonly wantsTokenIds: boolean
}

export class ChoiceReader implements OutputSink {
  readonly index: number
  hasEnded = false
  /** The text has ended by a stop that the gateway found. */
  hasStopped = false
  /** The last id that was read, where it stopped. */
  lastId = -1
  hasChunks = false
  completionTokens = 0
  reasoningTokens = 0
  readonly #sink: EngineSink
  readonly #options: ChoiceOptions
  readonly #decoder: TokenDecoder
  readonly #stream: OutputStream | null
  #logprobs: TokenLogprob[] | null = null
  #tokenIds: number[] | null = null

  constructor(index: number, sink: EngineSink, options: ChoiceOptions) {
    this.index = index
    this.#sink = sink
    this.#options = options
    this.#decoder = options.decoder
    this.#stream = options.open === null ? null : options.open(this)
  }

  get matchedStop(): string | number | null {
    return this.#decoder.matchedStop
  }

  /** Takes ids of output in; those behind a stop say nothing. */
  take(reply: EngineReply): void {
    const { tokenIds, logprobs } = reply
    const decoder = this.#decoder
    // However many come at once: each is reasoning or not by what stands before it.
    const isOneByOne = tokenIds.length > 1 && this.#stream?.separatesReasoning === true
    let text = ''
    for (let i = 0; i < tokenIds.length && !this.hasStopped; i++) {
      const id = tokenIds[i]
      const piece = decoder.push(id)
      const isStopId = decoder.matchedStop === id
      if (!isStopId && this.#options.wantsTokenIds) this.#holdId(id)
      if (!isStopId && logprobs !== null && i < logprobs.length && this.#options.topLogprobs !== null)
        this.#holdLogprob(id, logprobs[i], reply, i)
      if (this.#stream?.isReasoning === true) this.reasoningTokens++
      if (decoder.matchedStop !== null) {
        this.hasStopped = true
        this.lastId = id
      }
      if (!isOneByOne) text += piece
      else if (piece !== '') this.#push(piece)
    }
    if (text !== '') this.#push(text)
  }

  #push(text: string): void {
    if (this.#stream === null) this.text(text)
    else this.#stream.push(text)
  }

  #holdId(id: number): void {
    if (this.#tokenIds === null) this.#tokenIds = [id]
    else this.#tokenIds.push(id)
  }

  #holdLogprob(id: number, logprob: number, { top, named }: EngineReply, place: number): void {
    const held = this.#logprob(id, logprob, top[place], named[place])
    if (this.#logprobs === null) this.#logprobs = [held]
    else this.#logprobs.push(held)
  }

  #logprob(
    id: number,
    logprob: number,
    top: TopTokens | undefined,
    named: TopTokens | undefined,
  ): TokenLogprob {
    const { tokenizer, topLogprobs, wantsTokenIds } = this.#options
    const alternatives: TokenLogprob['top'][number][] = []
    const count = Math.min(topLogprobs ?? 0, top === undefined ? 0 : top.tokenIds.length)
    for (let i = 0; i < count; i++) {
      const { token, bytes } = tokenText(tokenizer, (top as TopTokens).tokenIds[i])
      alternatives.push({ token, logprob: (top as TopTokens).values[i], bytes })
    }
    const { token, bytes } = tokenText(tokenizer, id)
    return {
      token,
      logprob,
      bytes,
      top: alternatives,
      topIds: wantsTokenIds && top !== undefined ? top.tokenIds.slice(0, count) : undefined,
      named: named && toPairs(named),
    }
  }

  /** @param reason the engine's word */
  end(reason: string, engineStop: string | number | null): void {
    if (this.hasEnded) return
    this.hasEnded = true
    const rest = this.#decoder.end()
    if (rest !== '') this.#push(rest)
    const matched = this.#decoder.matchedStop
    const isFinished = matched === null ? isOwnEnd(reason, engineStop) : typeof matched === 'number'
    this.#stream?.end(isFinished)
    const own = typeof matched === 'string' ? matched : engineStop
    const { logprobs, tokenIds } = this.#takeHeld()
    this.#sink.emit({
      type: 'choice_done',
      choice: this.index,
      logprobs,
      tokenIds,
      reason: this.#reason(matched === null ? reason : 'stop'),
      matchedStop: own ?? matched,
    })
  }

  #reason(said: string): FinishReason {
    switch (said) {
      case 'length':
        return 'length'
      case 'abort':
      case 'error':
        return 'abort'
      case 'content_filter':
        return 'content_filter'
      default:
        return this.#stream !== null && this.#stream.toolCalls > 0 ? 'tool_calls' : 'stop'
    }
  }

  // What the output parser finds.

  reasoning(delta: string): void {
    const { logprobs, tokenIds } = this.#takeHeld()
    this.#sink.emit({ type: 'reasoning', choice: this.index, delta, logprobs, tokenIds })
  }

  text(delta: string): void {
    const { logprobs, tokenIds } = this.#takeHeld()
    this.#sink.emit({ type: 'text', choice: this.index, delta, logprobs, tokenIds })
  }

  toolCallStarted(index: number, id: string, name: string): void {
    this.#sink.emit({ type: 'tool_call', choice: this.index, index, id, name })
  }

  toolCallArguments(index: number, delta: string): void {
    const { logprobs, tokenIds } = this.#takeHeld()
    this.#sink.emit({ type: 'tool_arguments', choice: this.index, index, delta, logprobs, tokenIds })
  }

  /** A call that was cut off never ends. */
  toolCallDone(index: number, isComplete: boolean): void {
    if (isComplete) this.#sink.emit({ type: 'tool_call_done', choice: this.index, index })
  }

  /** Facts of tokens go out with the text that they made; those of tokens without text with whatever comes next. */
  #takeHeld(): { logprobs: TokenLogprob[] | null; tokenIds: number[] | null } {
    if (this.#logprobs === null && this.#tokenIds === null) return NOTHING_HELD
    const held = { logprobs: this.#logprobs, tokenIds: this.#tokenIds }
    this.#logprobs = null
    this.#tokenIds = null
    return held
  }
}

function toPairs({ values, tokenIds }: TopTokens): IdLogprob[] {
  const pairs: IdLogprob[] = []
  for (let i = 0; i < values.length && i < tokenIds.length; i++) pairs.push([values[i], tokenIds[i]])
  return pairs
}

/** The model's own end, and no limit or stop string that cut it off. */
function isOwnEnd(reason: string, engineStop: string | number | null): boolean {
  return !CUTS.has(reason) && typeof engineStop !== 'string'
}

const CUTS = new Set(['length', 'abort', 'error', 'content_filter'])
const NOTHING_HELD = Object.freeze({ logprobs: null, tokenIds: null })
