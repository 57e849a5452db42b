/**
 * The events of a turn with tools of the gateway as content blocks: a call and its result stand together, and what comes
 * meanwhile for other items waits.
 */
import { type FinishReason, isObject, type NativeObject, type ToolLoopEvent } from '#kernel'
import type { BlockOptions, ServerToolResult, TurnSink } from './block-sequence.ts'

/** Engine whose native items are content blocks. */
const ENGINE = 'messages'
/** As a service says that its own tools are still at work. */
const PAUSED = 'pause_turn'

/** Of calls. */
interface CalledNames {
  readonly id: string
  readonly name: string
  readonly server: string
  /** That the worker added to the block. */
  readonly members: NativeObject | undefined
}

interface Item extends CalledNames {
  readonly kind: 'text' | 'thinking' | 'call' | 'server_call' | 'native'
  /** Text that is not written yet. */
  waiting: string
  signature: string
  /** Not written yet. */
  readonly citations: unknown[]
  /** A complete block in the worker's format. */
  native: NativeObject | null
  /** Of text or thinking. */
  extraContent: NativeObject | null
  isOpen: boolean
  isDone: boolean
  result: ServerToolResult | null
}

export class TurnBlocks {
  reason: FinishReason | null = null
  matchedStop: string | number | null = null
  hasCalls = false
  hasBrokenCall = false
  hasRefusal = false
  /** The operator's limit ended the turn before the model did, or the worker paused while its own tools run. */
  isPaused = false
  readonly #sink: TurnSink
  readonly #thinking: BlockOptions['thinking']
  readonly #items = new Map<number, Item>()
  /** In order of their start; the first is being written. */
  #queue: Item[] = []
  #count = 0

  constructor(sink: TurnSink, { thinking }: BlockOptions) {
    this.#sink = sink
    this.#thinking = thinking
  }

  add(event: ToolLoopEvent): void {
    switch (event.type) {
      case 'item_started':
        this.#begin(event.index, event.item === 'reasoning' ? 'thinking' : 'text')
        return
      case 'text':
      case 'reasoning':
        this.#write(event.index, event.delta)
        return
      case 'refusal':
        this.hasRefusal = true
        this.#write(event.index, event.delta)
        return
      case 'reasoning_signature': {
        const item = this.#items.get(event.index)
        if (item !== undefined) item.signature += event.signature
        return
      }
      case 'annotation':
        this.#items.get(event.index)?.citations.push(event.annotation)
        this.#advance()
        return
      case 'native_started':
        if (event.engine === ENGINE) this.#begin(event.index, 'native')
        return
      case 'native_item':
        this.#endNative(event.index, event.item)
        return
      case 'item_done':
        this.#endItem(event)
        return
      case 'function_started':
        this.hasCalls = true
        this.#begin(event.index, 'call', { id: event.callId, name: event.name, members: event.members })
        return
      case 'function_arguments':
      case 'call_arguments':
        this.#write(event.index, event.delta)
        return
      case 'function_done':
        this.hasBrokenCall ||= event.isCut
        this.#end(event.index, null)
        return
      case 'call_started': {
        const { tool } = event
        const [name, server] = tool.kind === 'mcp' ? [tool.name, tool.label] : [tool.type, tool.type]
        this.#begin(event.index, 'server_call', { id: event.callId, name, server })
        return
      }
      case 'call_done': {
        const { callId: id, result } = event
        const isError = result.status !== 'completed'
        this.#end(event.index, { id, isError, text: isError ? result.modelText : result.output })
        return
      }
      case 'finished':
        this.#finish(event)
    }
  }

  #finish({ reason, matchedStop, native }: Extract<ToolLoopEvent, { type: 'finished' }>): void {
    const isPausedThere = reason === 'stop' && native?.engine === ENGINE && native.reason === PAUSED
    this.isPaused = reason === 'tool_limit' || isPausedThere
    this.reason = reason === 'tool_limit' ? 'stop' : reason === 'handed_over' ? 'tool_calls' : reason
    this.matchedStop = matchedStop
  }

  #endItem({ index, members }: Extract<ToolLoopEvent, { type: 'item_done' }>): void {
    const item = this.#items.get(index)
    if (item !== undefined && isObject(members?.extra_content)) item.extraContent = members.extra_content
    this.#end(index, null)
  }

  #endNative(index: number, block: NativeObject): void {
    const item = this.#items.get(index)
    if (item !== undefined) item.native = block
    this.#end(index, null)
  }

  /** Drops items that the client does not want. */
  #begin(index: number, kind: Item['kind'], called: Partial<CalledNames> = {}): void {
    if (kind === 'thinking' && this.#thinking === 'none') return
    const item: Item = {
      kind,
      id: '',
      name: '',
      server: '',
      members: undefined,
      ...called,
      waiting: '',
      signature: '',
      citations: [],
      native: null,
      extraContent: null,
      isOpen: false,
      isDone: false,
      result: null,
    }
    this.#items.set(index, item)
    this.#queue.push(item)
    this.#advance()
  }

  #write(index: number, delta: string): void {
    const item = this.#items.get(index)
    if (item === undefined || item.isDone) return
    item.waiting += delta
    this.#advance()
  }

  #end(index: number, result: ServerToolResult | null): void {
    const item = this.#items.get(index)
    if (item === undefined || item.isDone) return
    item.isDone = true
    item.result = result
    this.#advance()
  }

  /** Writes the first item, and the items behind it once it is done. */
  #advance(): void {
    for (let item = this.#queue.at(0); item !== undefined; item = this.#queue.at(0)) {
      this.#writeItem(item)
      if (!item.isDone) return
      if (item.isOpen) this.#sink.close(this.#count++, item.kind === 'thinking' ? item.signature : null)
      if (item.extraContent !== null) this.#sink.extraContent(this.#count++, item.extraContent)
      if (item.result !== null) this.#sink.serverResult(this.#count++, item.result)
      this.#queue.shift()
    }
  }

  #writeItem(item: Item): void {
    const { kind } = item
    if (kind === 'native') {
      if (item.native !== null) this.#sink.native(this.#count++, item.native)
      return
    }
    const isShown = kind !== 'text' || item.waiting.trim() !== '' || item.isOpen
    if (!isShown) return
    if (!item.isOpen) this.#open(item)
    const text = item.waiting
    item.waiting = ''
    if (kind === 'text') {
      if (text !== '') this.#sink.text(this.#count, text)
      for (const citation of item.citations.splice(0)) this.#sink.citation(this.#count, citation)
    } else if (text === '') return
    else if (kind !== 'thinking') this.#sink.input(this.#count, text)
    else if (this.#thinking === 'text') this.#sink.thinking(this.#count, text)
  }

  #open(item: Item): void {
    item.isOpen = true
    const { kind, id, name, server, members } = item
    if (kind === 'text') this.#sink.openText(this.#count)
    else if (kind === 'thinking') this.#sink.openThinking(this.#count)
    else if (kind === 'call') this.#sink.openCall(this.#count, id, name, members)
    else this.#sink.openServerCall(this.#count, id, name, server)
  }
}
