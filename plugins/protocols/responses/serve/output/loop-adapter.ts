/**
 * Adapts the events of one generation to those of a tool loop, for turns without tools of the gateway: both are encoded
 * by the same code. Only the first choice counts.
 */
import type {
  FinishReason,
  GenerationEvent,
  GenerationListener,
  GenerationUsage,
  TokenLogprob,
  ToolLoopListener,
} from '#kernel'
import { responsesErrors } from '../../errors.ts'

interface OpenCall {
  readonly index: number
  readonly callId: string
  readonly name: string
  arguments: string
}

export class LoopAdapter implements GenerationListener {
  readonly #out: ToolLoopListener
  #nextIndex = 0
  /** The open message or reasoning. */
  #open: { readonly kind: 'message' | 'reasoning'; readonly index: number } | null = null
  readonly #calls = new Map<number, OpenCall>()
  readonly #callIds = new Set<string>()
  /** The last call, held back until it is known that the answer was not cut inside of it. */
  #ended: OpenCall | null = null
  /** White space in front of a message: it is sent only if text follows it. */
  #space = ''
  #reason: FinishReason = 'stop'
  #matchedStop: string | number | null = null
  #hasMessage = false

  constructor(out: ToolLoopListener) {
    this.#out = out
  }

  onEvent(event: GenerationEvent): void {
    switch (event.type) {
      case 'started':
        this.#out.onEvent({ type: 'started', started: event })
        return
      case 'finished':
        this.#finish(event.usage)
        return
      case 'failed':
        this.#out.onEvent({ type: 'failed', error: event.error, usage: null })
        return
    }
    if (event.choice !== 0) return
    switch (event.type) {
      case 'text':
        this.#text(event.delta, event.logprobs ?? null)
        return
      case 'reasoning':
        this.#out.onEvent({
          type: 'reasoning',
          index: this.#item('reasoning'),
          delta: event.delta,
          logprobs: null,
          ...(event.isBreak === true && { isBreak: true }),
        })
        return
      case 'reasoning_signature':
        this.#out.onEvent({
          type: 'reasoning_signature',
          index: this.#item('reasoning'),
          signature: event.signature,
        })
        return
      case 'refusal':
        this.#out.onEvent({ type: 'refusal', index: this.#item('message'), delta: event.delta })
        return
      case 'annotation':
        this.#out.onEvent({ type: 'annotation', index: this.#item('message'), annotation: event.annotation })
        return
      case 'native_item':
        this.#space = ''
        this.#closeItem(false)
        this.#releaseCall(false)
        this.#out.onEvent({
          type: 'native_item',
          index: this.#nextIndex++,
          engine: event.engine,
          item: event.item,
        })
        return
      case 'tool_call':
        this.#beginCall(event.index, event.id, event.name)
        return
      case 'tool_arguments':
        this.#addArguments(event.index, event.delta)
        return
      case 'tool_call_done':
        this.#endCall(event.index)
        return
      case 'choice_done':
        this.#reason = event.reason
        this.#matchedStop = event.matchedStop
        this.#endItems(event.reason === 'length' || event.reason === 'content_filter')
        return
    }
  }

  #text(delta: string, logprobs: readonly TokenLogprob[] | null): void {
    if (this.#open?.kind !== 'message' && logprobs === null && delta.trim() === '') {
      this.#space += delta
      return
    }
    const text = this.#space + delta
    this.#space = ''
    this.#out.onEvent({ type: 'text', index: this.#item('message'), delta: text, logprobs })
  }

  /** @returns the index of the open item of that kind, begun here where there is none */
  #item(kind: 'message' | 'reasoning'): number {
    if (this.#open?.kind === kind) return this.#open.index
    this.#closeItem(false)
    this.#releaseCall(false)
    const index = this.#nextIndex++
    this.#open = { kind, index }
    if (kind === 'message') this.#hasMessage = true
    this.#out.onEvent({ type: 'item_started', index, item: kind })
    return index
  }

  #closeItem(isCut: boolean): void {
    if (this.#open === null) return
    const { index } = this.#open
    this.#open = null
    this.#out.onEvent({ type: 'item_done', index, isCut })
  }

  #beginCall(index: number, id: string, name: string): void {
    this.#space = ''
    this.#closeItem(false)
    this.#releaseCall(false)
    let callId = id
    for (let count = 2; this.#callIds.has(callId); count += 1) callId = `${id}_${count}`
    this.#callIds.add(callId)
    const call: OpenCall = { index: this.#nextIndex++, callId, name, arguments: '' }
    this.#calls.set(index, call)
    this.#out.onEvent({ type: 'function_started', index: call.index, callId, name })
  }

  #addArguments(index: number, delta: string): void {
    const call = this.#calls.get(index)
    if (call === undefined) return
    call.arguments += delta
    this.#out.onEvent({ type: 'function_arguments', index: call.index, delta })
  }

  #endCall(index: number): void {
    const call = this.#calls.get(index)
    if (call === undefined) return
    this.#calls.delete(index)
    this.#releaseCall(false)
    this.#ended = call
  }

  #releaseCall(isCut: boolean): void {
    const call = this.#ended
    if (call === null) return
    this.#ended = null
    if (call.arguments === '' && !isCut) {
      call.arguments = '{}'
      this.#out.onEvent({ type: 'function_arguments', index: call.index, delta: '{}' })
    }
    const { index, callId, name } = call
    this.#out.onEvent({ type: 'function_done', index, callId, name, arguments: call.arguments, isCut })
  }

  #endItems(isCut: boolean): void {
    // An answer that is only white space still has a message, as an empty one has.
    if (!this.#hasMessage && this.#nextIndex === 0) {
      const index = this.#item('message')
      if (this.#space !== '') this.#out.onEvent({ type: 'text', index, delta: this.#space, logprobs: null })
    }
    this.#closeItem(isCut)
    this.#releaseCall(isCut)
    // Engines may omit the end of a call; it is complete unless the answer was cut off.
    for (const index of this.#calls.keys()) {
      this.#endCall(index)
      this.#releaseCall(isCut)
    }
  }

  #finish(usage: GenerationUsage | null): void {
    if (this.#reason === 'abort') {
      this.#out.onEvent({ type: 'failed', error: responsesErrors.worker_aborted(), usage })
      return
    }
    const reason = this.#reason === 'tool_calls' ? 'handed_over' : this.#reason
    this.#out.onEvent({
      type: 'finished',
      reason,
      matchedStop: this.#matchedStop,
      usage,
      iterations: 1,
      toolCalls: 0,
    })
  }
}
