/** Decodes one choice of a response: token ids to text, through the output parser, to generation events. @hot */
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
import { isAbort } from '#shared'
import type { EngineOutput, TopTokens } from '../runtimes/runtime.ts'

export interface ChoiceOptions {
  readonly tokenizer: LoadedTokenizer
  readonly decoder: TokenDecoder
  /** Null if the output is plain text. */
  readonly open: ((sink: OutputSink) => OutputStream) | null
  /** Alternatives per token; null disables log probabilities. */
  readonly topLogprobs: number | null
  readonly wantsTokenIds: boolean
  /** Tokens after which decoding stops even if the engine continues. */
  readonly maxTokens: number
}

/** Tokens that are decoded in one turn of the event loop. */
const SLICE_TOKENS = 1_024

export class ChoiceReader implements OutputSink {
  readonly index: number
  hasEnded = false
  /** The gateway found a stop string or token. */
  hasStopped = false
  /** The engine generated more than the maximum. */
  hasExceeded = false
  /** The token id at which it stopped. */
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
  #decodedTokens = 0
  #hasCutCall = false

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

  /**
   * Decodes output ids from a position on, at most a slice of them; ignores those after a stop or beyond the maximum.
   * @returns the position at which to continue; the number of ids if nothing is left to decode
   */
  take(response: EngineOutput, from: number): number {
    const { tokenIds, logprobs } = response
    const { maxTokens } = this.#options
    const end = Math.min(tokenIds.length, from + SLICE_TOKENS)
    const decoder = this.#decoder
    // Pushed one by one, since each token counts as reasoning or not by the text before it.
    const isOneByOne = tokenIds.length > 1 && this.#stream?.separatesReasoning === true
    let text = ''
    for (let i = from; i < end && !this.hasStopped; i++) {
      if (this.#decodedTokens === maxTokens) {
        this.hasStopped = true
        this.hasExceeded = true
        break
      }
      this.#decodedTokens++
      const id = tokenIds[i]
      const piece = decoder.push(id)
      const isStopId = decoder.matchedStop === id
      if (!isStopId && this.#options.wantsTokenIds) this.#holdId(id)
      if (!isStopId && logprobs !== null && i < logprobs.length && this.#options.topLogprobs !== null)
        this.#holdLogprob(id, logprobs[i], response, i)
      if (this.#stream?.isReasoning === true) this.reasoningTokens++
      if (decoder.matchedStop !== null) {
        this.hasStopped = true
        this.lastId = id
      }
      if (!isOneByOne) text += piece
      else if (piece !== '') this.#push(piece)
    }
    if (text !== '') this.#push(text)
    return this.hasStopped ? tokenIds.length : end
  }

  #push(text: string): void {
    if (this.#stream === null) this.text(text)
    else this.#stream.push(text)
  }

  #holdId(id: number): void {
    if (this.#tokenIds === null) this.#tokenIds = [id]
    else this.#tokenIds.push(id)
  }

  #holdLogprob(id: number, logprob: number, { top, named }: EngineOutput, place: number): void {
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

  /** @param engineReason finish reason of the engine */
  end(engineReason: string, engineStop: string | number | null): void {
    if (this.hasEnded) return
    this.hasEnded = true
    const reason = this.hasExceeded ? 'length' : engineReason
    if (this.hasExceeded) this.completionTokens = this.#options.maxTokens
    const rest = this.#decoder.end()
    if (rest !== '') this.#push(rest)
    const matched = this.#decoder.matchedStop
    const isFinished = matched === null ? isOwnEnd(reason, engineStop) : typeof matched === 'number'
    this.#stream?.end(isFinished)
    const own = typeof matched === 'string' ? matched : engineStop
    const { logprobs, tokenIds } = this.#takeHeld()
    const said = matched === null ? reason : 'stop'
    this.#sink.emit({
      type: 'choice_done',
      choice: this.index,
      logprobs,
      tokenIds,
      reason: this.#reason(said),
      ...(this.#hasCutCall && said !== 'length' && { hasBrokenCalls: true }),
      matchedStop: own ?? matched,
    })
  }

  #reason(said: string): FinishReason {
    if (isAbort(said)) return 'abort'
    switch (said) {
      case 'length':
        return 'length'
      case 'content_filter':
        return 'content_filter'
      default:
        // A call whose arguments are not whole is cut off, whatever the engine reports.
        if (this.#hasCutCall) return 'length'
        return this.#stream !== null && this.#stream.toolCalls > 0 ? 'tool_calls' : 'stop'
    }
  }

  // Callbacks of the output parser.

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

  /** Truncated tool calls get no tool_call_done. */
  toolCallDone(index: number, isComplete: boolean): void {
    if (isComplete) this.#sink.emit({ type: 'tool_call_done', choice: this.index, index })
    else this.#hasCutCall = true
  }

  /** Token data is sent with the text of the tokens; that of tokens without text with the next event. */
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

/** Whether the model ended by itself, not by a limit or stop string. */
function isOwnEnd(reason: string, engineStop: string | number | null): boolean {
  return !CUTS.has(reason) && !isAbort(reason) && typeof engineStop !== 'string'
}

const CUTS = new Set(['length', 'content_filter'])
const NOTHING_HELD = Object.freeze({ logprobs: null, tokenIds: null })

export interface TokenText {
  readonly token: string
  readonly bytes: readonly number[]
}

/** Cached tokens per tokenizer. */
const MAX_CACHED_TOKENS = 20_000

const byTokenizer = new WeakMap<LoadedTokenizer, Map<number, TokenText>>()

/** A single token as text for log probabilities, including special tokens. */
function tokenText(tokenizer: LoadedTokenizer, id: number): TokenText {
  let known = byTokenizer.get(tokenizer)
  if (known === undefined) {
    known = new Map()
    byTokenizer.set(tokenizer, known)
  }
  let text = known.get(id)
  if (text === undefined) {
    const decoder = tokenizer.openDecoder({ skipSpecialTokens: false, isContinuation: true })
    const token = decoder.push(id) + decoder.end() || `<token_${id}>`
    text = { token, bytes: [...Buffer.from(token)] }
    if (known.size >= MAX_CACHED_TOKENS) known.clear()
    known.set(id, text)
  }
  return text
}
