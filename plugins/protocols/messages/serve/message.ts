/** A message: its blocks as one list, for responses that are not streamed; its stop reason and its token counts. */
import { randomBytes } from 'node:crypto'
import type { GenerationUsage, NativeObject } from '#kernel'
import { parseCallArguments } from '#shared'
import type { MessageResponse, WireResponseBlock, WireUsage } from '../wire.ts'
import type { BlockSink, Blocks, DeltaKind, MessageBlock } from './blocks.ts'

export class WholeBlocks implements BlockSink {
  readonly blocks: MessageBlock[] = []
  #input = ''

  open(_index: number, block: MessageBlock): void {
    this.#input = ''
    this.blocks.push(block)
  }

  citation(_index: number, citation: unknown): void {
    const block = this.blocks.at(-1)
    if (block?.type !== 'text') return
    block.citations ??= []
    block.citations.push(citation)
  }

  native(_index: number, block: NativeObject): void {
    // None of the kinds above: those have events of their own.
    this.blocks.push(block as unknown as MessageBlock)
  }

  delta(_index: number, kind: DeltaKind, delta: string): void {
    const block = this.blocks.at(-1)
    if (kind === 'input') this.#input += delta
    else if (block?.type === 'thinking') block.thinking += delta
    else if (block?.type === 'text') block.text += delta
  }

  close(_index: number, signature: string | null): void {
    const block = this.blocks.at(-1)
    if (block?.type === 'thinking') block.signature = signature ?? ''
    else if (block?.type === 'tool_use' || block?.type === 'mcp_tool_use')
      block.input = parseCallArguments(this.#input)
  }
}

export function makeMessageId(): string {
  return `msg_${randomBytes(12).toString('hex')}`
}

export function toMessage(
  model: string,
  blocks: WireResponseBlock[],
  { reason, sequence, members }: Stop,
  usage: WireUsage,
): MessageResponse {
  return {
    id: makeMessageId(),
    type: 'message',
    role: 'assistant',
    model,
    // A text without citations has no `citations`: some clients refuse a null.
    content: blocks,
    stop_reason: reason,
    stop_sequence: sequence,
    usage,
    ...members?.event,
    ...members?.delta,
  }
}

export interface Stop {
  readonly reason: MessageResponse['stop_reason']
  /** The client's stop sequence that was hit; null for any other reason. */
  readonly sequence: string | null
  /** What a worker of the format stated about the message beside. */
  readonly members?: AnswerMembers
}

/** Members of the message and of its last event, and of the delta in that event. */
interface AnswerMembers {
  readonly event?: NativeObject
  readonly delta?: NativeObject
}

/**
 * @param stops the client's stop sequences; a match of any other text is internal to the engine
 * @returns null when the worker aborted
 */
export function toStop(answer: Blocks, stops: readonly string[]): Stop | null {
  const stop = reasonOf(answer, stops)
  const { native } = answer
  if (stop === null || native === null) return stop
  // A reason that this format alone has.
  const isOwn = stop.reason === 'end_turn' || stop.reason === 'max_tokens'
  const reason = isOwn && native.reason !== null && native.reason !== 'tool_use' ? native.reason : stop.reason
  return { ...stop, reason: reason as Stop['reason'], members: native.members }
}

function reasonOf(answer: Blocks, stops: readonly string[]): Stop | null {
  const { reason, matchedStop, hasCalls, hasBrokenCall, hasRefusal, isPaused } = answer
  if (isPaused) return { reason: 'pause_turn', sequence: null }
  if (reason === 'abort' || reason === null) return null
  if (reason === 'content_filter') return { reason: 'refusal', sequence: null }
  // The client cannot run a call that was cut off.
  if (hasBrokenCall || (reason === 'length' && !hasCalls)) return { reason: 'max_tokens', sequence: null }
  if (hasCalls) return { reason: 'tool_use', sequence: null }
  if (hasRefusal) return { reason: 'refusal', sequence: null }
  if (typeof matchedStop === 'string' && stops.includes(matchedStop))
    return { reason: 'stop_sequence', sequence: matchedStop }
  return { reason: 'end_turn', sequence: null }
}

/** In this format the input excludes tokens that were read from a cache or written to one. */
export function toUsage(usage: GenerationUsage): WireUsage {
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  }
}

/** For the beginning of a stream, whose end has the usage. */
export function usageSoFar(inputTokens: number): WireUsage {
  return {
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 0,
  }
}

/** For an answer whose worker reports no usage. */
export function estimatedUsage(inputTokens: number, outputCharacters: number): WireUsage {
  return {
    ...usageSoFar(inputTokens),
    output_tokens: Math.ceil(outputCharacters / CHARACTERS_PER_TOKEN),
    estimated: true,
  }
}

const CHARACTERS_PER_TOKEN = 4
