/** Pieces and whole choices of the engines whose messages are alike. @hot */
import type { EngineReply, TopTokens } from './runtime.ts'

interface WireCounts {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens?: number
  readonly outputLogprobs:
    | { readonly tokenLogprobs: readonly number[]; readonly topLogprobs: readonly TopTokens[] }
    | undefined
}

interface WireChunk extends WireCounts {
  readonly tokenIds: readonly number[]
  /** Engines of one choice name none. */
  readonly index?: number
}

interface WireComplete extends WireCounts {
  readonly outputIds: readonly number[]
  readonly finishReason: string
  readonly matchedTokenId?: number | undefined
  readonly matchedStopStr?: string | undefined
  readonly index: number
}

/** Tokens on the way. */
export function pieceOf(chunk: WireChunk): EngineReply {
  const { outputLogprobs } = chunk
  return {
    isComplete: false,
    index: chunk.index ?? 0,
    tokenIds: chunk.tokenIds,
    promptTokens: chunk.promptTokens,
    completionTokens: chunk.completionTokens,
    cachedTokens: chunk.cachedTokens,
    reasoningTokens: chunk.reasoningTokens ?? 0,
    finishReason: '',
    matchedStop: null,
    logprobs: outputLogprobs === undefined ? null : outputLogprobs.tokenLogprobs,
    top: outputLogprobs === undefined ? [] : outputLogprobs.topLogprobs,
    named: [],
    promptLogprobs: null,
    transferJson: null,
  }
}

export function choiceOf(complete: WireComplete): EngineReply {
  const { outputLogprobs } = complete
  return {
    isComplete: true,
    index: complete.index,
    tokenIds: complete.outputIds,
    promptTokens: complete.promptTokens,
    completionTokens: complete.completionTokens,
    cachedTokens: complete.cachedTokens,
    reasoningTokens: complete.reasoningTokens ?? 0,
    finishReason: complete.finishReason,
    matchedStop: complete.matchedStopStr ?? complete.matchedTokenId ?? null,
    logprobs: outputLogprobs === undefined ? null : outputLogprobs.tokenLogprobs,
    top: outputLogprobs === undefined ? [] : outputLogprobs.topLogprobs,
    named: [],
    promptLogprobs: null,
    transferJson: null,
  }
}

/** A message of a kind that came later than this was written: it says nothing. */
export function emptyReply(): EngineReply {
  return {
    isComplete: false,
    index: 0,
    tokenIds: [],
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    reasoningTokens: 0,
    finishReason: '',
    matchedStop: null,
    logprobs: null,
    top: [],
    named: [],
    promptLogprobs: null,
    transferJson: null,
  }
}
