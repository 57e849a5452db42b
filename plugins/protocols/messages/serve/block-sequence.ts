/** The events of a generation as content blocks. */
import type { GenerationEvent } from '#kernel'
import { imageOfItem, withExtraContent } from '#shared'
import { type Block, Blocks, CallInput, ENGINE, IMAGE_NOTE } from './blocks.ts'

export class BlockSequence extends Blocks<GenerationEvent> {
  readonly #calls = new Map<number, Block>()
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
        if (this.options.thinking !== 'none') this.#thinking().signature += event.signature
        return
      case 'tool_call':
        if (this.#calls.size >= this.options.maxCalls) return
        this.hasCalls = true
        this.#calls.set(event.index, this.#beginCall(event))
        return
      case 'tool_arguments': {
        const call = this.#calls.get(event.index)
        if (call !== undefined) this.write(call, event.delta)
        return
      }
      case 'tool_call_done':
        this.#endCall(this.#calls.get(event.index))
        return
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
        this.endAnswer(event.native, event.reason)
        this.reason = event.reason
        this.matchedStop = event.matchedStop
        for (const call of this.#calls.values()) this.#endCall(call)
        if (event.extraContent !== undefined) this.#beginRun('text').extraContent = event.extraContent
        if (this.#last !== null) this.end(this.#last)
    }
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

  #beginCall({
    id,
    name,
    members: own,
    extraContent,
  }: Extract<GenerationEvent, { type: 'tool_call' }>): Block {
    this.#endRun()
    const members = withExtraContent(own, extraContent)
    return this.begin('call', { id, name, members, input: new CallInput() })
  }

  #endRun(): void {
    this.#space = ''
    if (this.#last !== null) this.end(this.#last)
    this.#last = null
  }

  #endCall(call: Block | undefined): void {
    if (call === undefined) return
    this.hasBrokenCall ||= call.input?.isBroken === true
    this.end(call)
  }
}
