/**
 * The events of a generation as content blocks, one after the other: one is open at a time, numbered from 0. What comes
 * for another block while a call is being written waits until that call is whole.
 */
import type { FinishReason, GenerationEvent, NativeObject } from '#kernel'
import { tryParseJson, withExtraContent } from '#shared'

/** Result of a tool that the gateway ran. */
export interface ServerToolResult {
  readonly id: string
  readonly isError: boolean
  readonly text: string
}

/** Receives blocks. `close` ends the one that was opened last. */
export interface BlockSink {
  openThinking(index: number): void
  openText(index: number): void
  /** @param members further members of the block */
  openCall(index: number, id: string, name: string, members?: NativeObject): void
  /** A call that the gateway runs. */
  openServerCall(index: number, id: string, name: string, server: string): void
  /** A complete block: the vendor's data about text and reasoning, which is known only behind them. */
  extraContent(index: number, data: NativeObject): void
  /** A complete block. */
  serverResult(index: number, result: ServerToolResult): void
  thinking(index: number, delta: string): void
  text(index: number, delta: string): void
  input(index: number, delta: string): void
  /** @param signature of a thinking block, empty if the worker gave none; null for other blocks */
  close(index: number, signature: string | null): void
}

/** Receives also what only a turn with tools has. */
export interface TurnSink extends BlockSink {
  /** A source of the text so far, in the worker's format. */
  citation(index: number, citation: unknown): void
  /** A complete block in the worker's format. */
  native(index: number, block: NativeObject): void
}

export interface BlockOptions {
  /** `empty`: blocks without their text; `none`: no such blocks. */
  readonly thinking: 'text' | 'empty' | 'none'
  readonly maxCalls: number
}

interface Call {
  readonly kind: 'call'
  readonly id: string
  readonly name: string
  readonly members: NativeObject | undefined
  input: string
  readonly end: ObjectEnd
  /** Whether the input is JSON; null until it was parsed. */
  isJson: boolean | null
  isDone: boolean
  isClosed: boolean
}

type Waiting = Call | { readonly kind: 'text' | 'thinking'; text: string }

export class BlockSequence {
  /** Finish reason; null before the end. */
  reason: FinishReason | null = null
  matchedStop: string | number | null = null
  hasCalls = false
  hasRefusal = false
  /** Input of a call was cut off. */
  hasBrokenCall = false
  readonly #sink: BlockSink
  readonly #options: BlockOptions
  #count = 0
  #open: 'thinking' | 'text' | Call | null = null
  #signature = ''
  /** White space that is written only if text follows. */
  #space = ''
  readonly #calls = new Map<number, Call>()
  #waiting: Waiting[] = []

  constructor(sink: BlockSink, options: BlockOptions) {
    this.#sink = sink
    this.#options = options
  }

  /** Only the first choice is written. */
  add(event: GenerationEvent): void {
    if (!('choice' in event) || event.choice !== 0) return
    switch (event.type) {
      case 'text':
        this.#run('text', event.delta)
        return
      case 'refusal':
        this.hasRefusal = true
        this.#run('text', event.delta)
        return
      case 'reasoning':
        if (this.#options.thinking !== 'none') this.#run('thinking', event.delta)
        return
      case 'reasoning_signature':
        this.#sign(event.signature)
        return
      case 'tool_call':
        this.#addCall(event.index, event.id, event.name, withExtraContent(undefined, event.extraContent))
        return
      case 'tool_arguments':
        this.#addInput(event.index, event.delta)
        return
      case 'tool_call_done':
        this.#callDone(event.index)
        return
      case 'choice_done':
        this.reason = event.reason
        this.matchedStop = event.matchedStop
        this.#end()
        if (event.extraContent !== undefined) this.#sink.extraContent(this.#count++, event.extraContent)
    }
  }

  #run(kind: 'text' | 'thinking', delta: string): void {
    if (!this.#isBlocked()) this.#write(kind, delta)
    else {
      const last = this.#waiting.at(-1)
      if (last?.kind === kind) last.text += delta
      else this.#waiting.push({ kind, text: delta })
    }
  }

  #write(kind: 'text' | 'thinking', delta: string): void {
    let text = delta
    if (this.#open !== kind) {
      if (kind === 'text') {
        text = this.#space + delta
        if (text.trim() === '') {
          this.#space = text
          return
        }
      }
      this.#close()
      if (kind === 'text') this.#sink.openText(this.#count)
      else this.#sink.openThinking(this.#count)
      this.#open = kind
    }
    if (kind === 'text') this.#sink.text(this.#count, text)
    else if (this.#options.thinking === 'text') this.#sink.thinking(this.#count, text)
  }

  /** A signature without text belongs to thinking that the vendor hides. */
  #sign(signature: string): void {
    if (this.#options.thinking === 'none' || this.#isBlocked()) return
    if (this.#open !== 'thinking') {
      this.#close()
      this.#sink.openThinking(this.#count)
      this.#open = 'thinking'
    }
    this.#signature += signature
  }

  #addCall(index: number, id: string, name: string, members: NativeObject | undefined): void {
    if (this.#calls.size >= this.#options.maxCalls) return
    const call: Call = {
      kind: 'call',
      id,
      name,
      members,
      input: '',
      end: new ObjectEnd(),
      isJson: null,
      isDone: false,
      isClosed: false,
    }
    this.#calls.set(index, call)
    this.hasCalls = true
    if (this.#isBlocked()) this.#waiting.push(call)
    else this.#openCall(call)
  }

  #openCall(call: Call): void {
    this.#close()
    this.#sink.openCall(this.#count, call.id, call.name, call.members)
    this.#open = call
    if (call.input !== '') this.#sink.input(this.#count, call.input)
  }

  #addInput(index: number, delta: string): void {
    const call = this.#calls.get(index)
    if (call === undefined || call.isClosed) return
    call.input += delta
    call.end.push(delta)
    if (call === this.#open) this.#sink.input(this.#count, delta)
  }

  #callDone(index: number): void {
    const call = this.#calls.get(index)
    if (call === undefined) return
    call.isDone = true
    if (call !== this.#open) return
    this.#close()
    this.#drain()
  }

  /** True while a call with incomplete input is open; a complete one is closed first. */
  #isBlocked(): boolean {
    const open = this.#open
    if (open === null || typeof open === 'string') return false
    if (!isWhole(open)) return true
    this.#close()
    this.#drain()
    return this.#open !== null && typeof this.#open !== 'string'
  }

  /** Writes the blocks that waited, up to a call with incomplete input. */
  #drain(): void {
    const waiting = this.#waiting
    let at = 0
    while (at < waiting.length) {
      const next = waiting[at++]
      if (next.kind !== 'call') this.#write(next.kind, next.text)
      else {
        this.#openCall(next)
        if (!next.isDone && !isWhole(next)) break
        this.#close()
      }
    }
    this.#waiting = waiting.slice(at)
  }

  #close(): void {
    const open = this.#open
    this.#space = ''
    if (open === null) return
    this.#open = null
    if (typeof open === 'object') {
      open.isClosed = true
      this.hasBrokenCall ||= open.input.trim() !== '' && !isWhole(open)
    }
    const signature = open === 'thinking' ? this.#signature : null
    this.#signature = ''
    this.#sink.close(this.#count++, signature)
  }

  #end(): void {
    for (const call of this.#calls.values()) call.isDone = true
    this.#close()
    this.#drain()
    this.#close()
  }
}

/** The text is parsed once, at its end: later text cannot repair an earlier error. */
function isWhole(call: Call): boolean {
  if (!call.end.isReached) return false
  call.isJson ??= tryParseJson(call.input) !== undefined
  return call.isJson
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Finds the end of a JSON object that arrives in pieces, reading each character once. */
class ObjectEnd {
  #depth = 0
  #isString = false
  #isEscaped = false
  #hasClosed = false
  #hasMore = false

  /** The pieces so far end with the brace that closes the first one, and white space. */
  get isReached(): boolean {
    return this.#hasClosed && !this.#hasMore
  }

  push(piece: string): void {
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
