/**
 * The events of a generation or a turn as content blocks: a call that the gateway runs and its result stand together.
 */
import type { ChoiceEnd, GenerationEvent } from '#kernel'
import { imageOfItem, withExtraContent } from '#shared'
import { type Block, Blocks, CallInput, ENGINE, IMAGE_NOTE } from './blocks.ts'

export class BlockSequence extends Blocks {
  readonly #calls = new Map<number, Block>()
  /** Calls that the client runs. */
  #ownCalls = 0
  /** By number; of workers that speak the format. */
  readonly #natives = new Map<number, Block>()
  /** Text or thinking that began last, unless a call began behind it. */
  #last: Block | null = null
  /** White space in front of a text, which is written only if text follows. */
  #space = ''

  /** Only the first choice is written. */
  add(event: GenerationEvent): void {
    if (!('choice' in event) || event.choice !== 0) return
    switch (event.type) {
      case 'text':
        this.#addText(event.delta)
        return
      case 'refusal':
        this.hasRefusal = true
        this.#addText(event.delta)
        return
      case 'reasoning':
        if (this.options.thinking !== 'none') this.write(this.#thinking(), event.delta)
        return
      // Without text it belongs to thinking that the vendor hides.
      case 'reasoning_signature':
        if (this.options.thinking !== 'none') this.#thinking().signature = event.signature
        // Later thinking has a signature of its own.
        this.#endRun()
        return
      case 'tool_call':
        this.#beginCall(event)
        return
      case 'tool_arguments': {
        const call = this.#calls.get(event.index)
        if (call !== undefined) this.write(call, event.delta)
        return
      }
      case 'tool_call_done':
        this.#endCall(this.#calls.get(event.index))
        return
      case 'call_done': {
        const call = this.#calls.get(event.index)
        if (call === undefined) return
        const { status, modelText, output } = event.result
        const isError = status !== 'completed'
        this.hasBrokenCall ||= status === 'incomplete'
        if (!call.hasText) this.write(call, event.arguments)
        call.result = { id: call.id, isError, text: isError ? modelText : output }
        this.end(call)
        return
      }
      case 'annotation':
        if (event.engine !== ENGINE) this.leftOut.add('annotations')
        else this.cite(this.#last?.kind === 'text' ? this.#last : this.#beginRun('text'), event.annotation)
        return
      case 'native_started':
        if (event.engine !== ENGINE) return
        this.#endRun()
        this.#natives.set(event.number, this.begin('native'))
        return
      case 'native_item': {
        const block = this.#natives.get(event.number)
        if (block !== undefined) this.endNative(block, event.item)
        else if (imageOfItem(event.item) !== null) this.#addText(IMAGE_NOTE)
        return
      }
      case 'choice_done':
        this.endAnswer(event)
        this.#endGeneration(event)
        return
      case 'generation_done':
        this.#endGeneration(event)
    }
  }

  #endGeneration({ extraContent }: ChoiceEnd): void {
    for (const call of this.#calls.values()) this.#endCall(call)
    if (extraContent !== undefined) this.#beginRun('text').extraContent = extraContent
    this.#endRun()
  }

  #addText(delta: string): void {
    if (this.#last?.kind === 'text') {
      this.write(this.#last, delta)
      return
    }
    const text = this.#space + delta
    if (text.trim() === '') this.#space = text
    else this.write(this.#beginRun('text'), text)
  }

  #thinking(): Block {
    return this.#last?.kind === 'thinking' ? this.#last : this.#beginRun('thinking')
  }

  #beginRun(kind: 'text' | 'thinking'): Block {
    this.#endRun()
    this.#last = this.begin(kind)
    return this.#last
  }

  #beginCall(event: Extract<GenerationEvent, { type: 'tool_call' }>): void {
    const { index, id, name, tool } = event
    if (tool !== undefined) {
      this.#endRun()
      const [named, server] = tool.kind === 'mcp' ? [tool.name, tool.label] : [tool.type, tool.type]
      this.#calls.set(index, this.begin('server_call', { id, name: named, server }))
    } else if (this.#ownCalls < this.options.maxCalls) {
      this.#endRun()
      this.#ownCalls++
      this.hasCalls = true
      const members = withExtraContent(event.members, event.extraContent)
      this.#calls.set(index, this.begin('call', { id, name, members, input: new CallInput() }))
    }
  }

  #endRun(): void {
    this.#space = ''
    if (this.#last !== null) this.end(this.#last)
    this.#last = null
  }

  #endCall(call: Block | undefined): void {
    // A call that the gateway runs ends with its result.
    if (call === undefined || call.kind === 'server_call') return
    this.hasBrokenCall ||= call.input?.isBroken === true
    this.end(call)
  }
}
