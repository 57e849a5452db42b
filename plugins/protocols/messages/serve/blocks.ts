/**
 * Content blocks of an answer, one after the other: one is open at a time, numbered from 0. What comes for another block
 * meanwhile waits until the open one is complete. @hot
 */
import type { FinishReason, GenerationEvent, NativeAnswer, NativeObject } from '#kernel'
import { LeftOut, tryParseJson } from '#shared'
import type { WireResponseBlock } from '../wire.ts'
import { toClientId, toServerCallId } from './tool-ids.ts'

/** Result of a tool that the gateway ran. */
interface ServerToolResult {
  readonly id: string
  readonly isError: boolean
  readonly text: string
}

type Writable<T> = { -readonly [Member in keyof T]: T[Member] }
/** A block of the message, as it begins or complete. */
export type MessageBlock = {
  [Kind in WireResponseBlock['type']]: Writable<Extract<WireResponseBlock, { type: Kind }>>
}[WireResponseBlock['type']]

export type DeltaKind = 'text' | 'thinking' | 'input'

/** Receives blocks. `close` ends the one that was opened last. */
export interface BlockSink {
  open(index: number, block: MessageBlock): void
  /** A complete block in the worker's format. */
  native(index: number, block: NativeObject): void
  /** @param kind of the delta; `input` is of a call */
  delta(index: number, kind: DeltaKind, delta: string): void
  /** A source of the text so far, in the worker's format. */
  citation(index: number, citation: unknown): void
  /** @param signature of a thinking block, empty if the worker gave none; null for other blocks */
  close(index: number, signature: string | null): void
}

export interface BlockOptions {
  /** `empty`: blocks without their text; `none`: no such blocks. */
  readonly thinking: 'text' | 'empty' | 'none'
  readonly maxCalls: number
}

/** Of calls. */
interface CalledNames {
  readonly id: string
  readonly name: string
  readonly server: string
  /** That the worker added to the block. */
  readonly members: NativeObject | undefined
  /** Of a call that ends with its input, if others wait behind it. */
  readonly input: CallInput | null
}

/** One block, or none if nothing of it is shown. */
export interface Block extends CalledNames {
  readonly kind: 'text' | 'thinking' | 'call' | 'server_call' | 'native'
  /** Text that is not written yet. */
  waiting: string
  hasText: boolean
  signature: string
  /** Not written yet. */
  readonly citations: unknown[]
  /** A complete block in the worker's format. */
  native: NativeObject | null
  /** Of text or thinking. */
  extraContent: NativeObject | null
  result: ServerToolResult | null
  isOpen: boolean
  isDone: boolean
}

/** Name of the engine adapter whose native items are content blocks. */
export const ENGINE = 'messages'
/** As a service says that its own tools are still at work. */
const PAUSED = 'pause_turn'

/** Answers of this format hold no images. */
export const IMAGE_NOTE = '[The model made an image, which this format cannot hold.]'

export abstract class Blocks {
  /** Null before the end. */
  reason: FinishReason | null = null
  matchedStop: string | number | null = null
  /** The answer of a worker that speaks the format. */
  native: NativeAnswer | null = null
  hasCalls = false
  hasRefusal = false
  /** Input of a call was cut off. */
  hasBrokenCall = false
  /** The operator's limit ended the turn before the model did, or the worker paused while its own tools run. */
  isPaused = false
  readonly leftOut = new LeftOut()
  protected readonly options: BlockOptions
  /** Of all deltas, for estimates of the usage. */
  characters = 0
  readonly #sink: BlockSink
  /** In order of their start; the first is being written. */
  #queue: Block[] = []
  #count = 0

  constructor(sink: BlockSink, options: BlockOptions) {
    this.#sink = sink
    this.options = options
  }

  protected begin(kind: Block['kind'], called: Partial<CalledNames> = {}): Block {
    const block: Block = {
      kind,
      id: '',
      name: '',
      server: '',
      members: undefined,
      input: null,
      ...called,
      waiting: '',
      hasText: false,
      signature: '',
      citations: [],
      native: null,
      extraContent: null,
      result: null,
      isOpen: false,
      isDone: false,
    }
    this.#queue.push(block)
    this.advance()
    return block
  }

  protected write(block: Block, delta: string): void {
    if (block.isDone) return
    block.waiting += delta
    block.hasText = true
    block.input?.push(delta)
    this.advance()
  }

  protected end(block: Block): void {
    if (block.isDone) return
    block.isDone = true
    this.advance()
  }

  /** A source of the text in the block. */
  protected cite(block: Block, annotation: unknown): void {
    block.citations.push(annotation)
    this.advance()
  }

  protected endNative(block: Block, item: NativeObject): void {
    block.native = item
    this.end(block)
  }

  protected endAnswer(end: Extract<GenerationEvent, { type: 'choice_done' }>): void {
    const { native, reason, matchedStop, isAtToolLimit } = end
    this.reason = reason
    this.matchedStop = matchedStop
    this.native = native?.engine === ENGINE ? native : null
    this.isPaused = isAtToolLimit === true || (reason === 'stop' && this.native?.reason === PAUSED)
  }

  /** Writes the first block, and those behind it once it is complete. */
  protected advance(): void {
    for (let block = this.#queue.at(0); block !== undefined; block = this.#queue.at(0)) {
      this.#write(block)
      if (!block.isDone && (this.#queue.length === 1 || block.input?.isWhole() !== true)) return
      block.isDone = true
      if (block.isOpen) this.#sink.close(this.#count++, block.kind === 'thinking' ? block.signature : null)
      const { extraContent, result } = block
      // Known only behind the text or reasoning that it is about.
      if (extraContent !== null) this.#whole({ type: 'text', text: '', extra_content: extraContent })
      if (result !== null) this.#whole(toResultBlock(result))
      this.#queue.shift()
    }
  }

  #write(block: Block): void {
    const { kind } = block
    if (kind === 'native') {
      if (block.native !== null) this.#sink.native(this.#count++, block.native)
      return
    }
    const isShown =
      kind !== 'text' || block.isOpen || block.waiting.trim() !== '' || block.citations.length > 0
    if (!isShown) return
    if (!block.isOpen) this.#sink.open(this.#count, startOf(block))
    block.isOpen = true
    const text = block.waiting
    block.waiting = ''
    if (kind === 'text') {
      if (text !== '') this.#delta(kind, text)
      if (block.citations.length === 0) return
      for (const citation of block.citations.splice(0)) this.#sink.citation(this.#count, citation)
    } else if (text === '') return
    else if (kind !== 'thinking') this.#delta('input', text)
    else if (this.options.thinking === 'text') this.#delta(kind, text)
  }

  #delta(kind: DeltaKind, text: string): void {
    this.characters += text.length
    this.#sink.delta(this.#count, kind, text)
  }

  #whole(block: MessageBlock): void {
    this.#sink.open(this.#count, block)
    this.#sink.close(this.#count++, null)
  }
}

function startOf({ kind, id, name, server, members }: Block): MessageBlock {
  switch (kind) {
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'call':
      return { ...members, type: 'tool_use', id: toClientId(id), name, input: {} }
    case 'server_call':
      return { type: 'mcp_tool_use', id: toServerCallId(id), name, server_name: server, input: {} }
    default:
      return { type: 'text', text: '' }
  }
}

function toResultBlock({ id, isError, text }: ServerToolResult): MessageBlock {
  const content = [{ type: 'text' as const, text }]
  return { type: 'mcp_tool_result', tool_use_id: toServerCallId(id), is_error: isError, content }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Input of a call, which arrives in pieces: finds the end of the JSON object, reading each character once. */
export class CallInput {
  #text = ''
  #depth = 0
  #isString = false
  #isEscaped = false
  #hasClosed = false
  #hasMore = false
  #isJson: boolean | null = null

  /**
   * True if the pieces end with the brace that closes the first one, and white space. Parsed once: later text cannot repair an
   * earlier error.
   */
  isWhole(): boolean {
    if (!this.#hasClosed || this.#hasMore) return false
    this.#isJson ??= tryParseJson(this.#text) !== undefined
    return this.#isJson
  }

  /** Something, but no whole object. */
  get isBroken(): boolean {
    return this.#text.trim() !== '' && !this.isWhole()
  }

  push(piece: string): void {
    this.#text += piece
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at)
      if (this.#hasClosed) this.#hasMore ||= piece[at].trim() !== ''
      else if (this.#isEscaped) this.#isEscaped = false
      else if (this.#isString) {
        if (code === QUOTE) this.#isString = false
        else if (code === BACKSLASH) this.#isEscaped = true
      } else if (code === QUOTE) this.#isString = true
      else if (piece[at] === '{') this.#depth++
      else if (piece[at] === '}' && --this.#depth <= 0) this.#hasClosed = true
    }
  }
}
