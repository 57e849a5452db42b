/** The events of a turn with tools of the gateway as content blocks: a call and its result stand together. */
import { isObject, type ToolLoopEvent } from '#kernel'
import { imageOfItem } from '#shared'
import { type Block, Blocks, ENGINE, IMAGE_NOTE } from './blocks.ts'

export class TurnBlocks extends Blocks<ToolLoopEvent> {
  /** By index of the item. Without those that the client does not want. */
  readonly #blocks = new Map<number, Block>()

  add(event: ToolLoopEvent): void {
    const block = 'index' in event ? this.#blocks.get(event.index) : undefined
    switch (event.type) {
      case 'item_started':
        if (event.item === 'message') this.#blocks.set(event.index, this.begin('text'))
        else if (this.options.thinking !== 'none') this.#blocks.set(event.index, this.begin('thinking'))
        return
      case 'native_started':
        if (event.engine === ENGINE) this.#blocks.set(event.index, this.begin('native'))
        return
      case 'function_started': {
        const { index, callId: id, name, members } = event
        this.hasCalls = true
        this.#blocks.set(index, this.begin('call', { id, name, members }))
        return
      }
      case 'call_started': {
        const { tool, callId: id } = event
        const [name, server] = tool.kind === 'mcp' ? [tool.name, tool.label] : [tool.type, tool.type]
        this.#blocks.set(event.index, this.begin('server_call', { id, name, server }))
        return
      }
      case 'native_item':
        if (block === undefined && imageOfItem(event.item) !== null) this.#addNote()
        break
      case 'function_done':
        this.hasBrokenCall ||= event.isCut
        break
      case 'refusal':
        this.hasRefusal = true
        break
      case 'finished':
        this.#finish(event)
        return
    }
    if (block !== undefined) this.#addTo(block, event)
  }

  #addNote(): void {
    const note = this.begin('text')
    this.write(note, IMAGE_NOTE)
    this.end(note)
  }

  #addTo(block: Block, event: ToolLoopEvent): void {
    switch (event.type) {
      case 'text':
      case 'reasoning':
      case 'refusal':
      case 'function_arguments':
      case 'call_arguments':
        this.write(block, event.delta)
        return
      case 'reasoning_signature':
        block.signature += event.signature
        return
      case 'annotation':
        if (event.engine !== ENGINE) this.leftOut.add('annotations')
        else this.cite(block, event.annotation)
        return
      case 'native_item':
        this.endNative(block, event.item)
        return
      case 'item_done':
        if (isObject(event.members?.extra_content)) block.extraContent = event.members.extra_content
        this.end(block)
        return
      case 'function_done':
        this.end(block)
        return
      case 'call_done': {
        const { callId: id, result } = event
        const isError = result.status !== 'completed'
        block.result = { id, isError, text: isError ? result.modelText : result.output }
        this.end(block)
      }
    }
  }

  #finish({ reason, matchedStop, native }: Extract<ToolLoopEvent, { type: 'finished' }>): void {
    this.endAnswer(native, reason)
    this.reason = reason === 'tool_limit' ? 'stop' : reason === 'handed_over' ? 'tool_calls' : reason
    this.matchedStop = matchedStop
  }
}
