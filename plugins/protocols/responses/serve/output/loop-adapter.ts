/**
 * Adapts the events of one generation to those of a tool loop, for turns without tools of the gateway: both are encoded
 * by the same code. Only the first choice counts.
 */
import type {
  FinishReason,
  GenerationEvent,
  GenerationListener,
  GenerationUsage,
  NativeObject,
  NativeSubject,
  TokenLogprob,
  ToolLoopListener,
} from '#kernel'
import { withExtraContent } from '#shared'
import { responsesErrors } from '../../errors.ts'

interface OpenCall {
  readonly index: number
  readonly callId: string
  readonly name: string
  arguments: string
  members: NativeObject | undefined
  readonly extraContent: NativeObject | undefined
}

interface OpenText {
  readonly kind: 'message' | 'reasoning'
  readonly index: number
  /** Set once the worker has ended the item; it stays open until it is known that the answer was not cut inside of it. */
  members: NativeObject | undefined
}

export class LoopAdapter implements GenerationListener {
  readonly #out: ToolLoopListener
  #nextIndex = 0
  /** The open message or reasoning. */
  #open: OpenText | null = null
  readonly #calls = new Map<number, OpenCall>()
  readonly #callIds = new Set<string>()
  /** Output indexes of open native items, by number. */
  readonly #natives = new Map<number, number>()
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
          ...(event.form !== undefined && { form: event.form }),
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
      case 'item_started':
        this.#begin(event.item, event.members)
        return
      case 'part_done':
        this.#out.onEvent({ type: 'part_done', index: this.#item('message'), part: event.part })
        return
      case 'item_done':
        if (this.#open !== null) this.#open.members = event.members
        return
      case 'native_started': {
        this.#closeAll()
        const index = this.#nextIndex++
        this.#natives.set(event.number, index)
        this.#out.onEvent({ type: event.type, index, engine: event.engine, item: event.item })
        return
      }
      case 'native_event':
        this.#native(event.of, event.event)
        return
      case 'native_item': {
        const index = this.#natives.get(event.number)
        this.#natives.delete(event.number)
        if (index !== undefined)
          this.#out.onEvent({ type: event.type, index, engine: event.engine, item: event.item })
        return
      }
      case 'tool_call':
        this.#beginCall(event)
        return
      case 'tool_arguments':
        this.#addArguments(event.index, event.delta)
        return
      case 'tool_call_done':
        this.#endCall(event.index, event.members)
        return
      case 'choice_done':
        this.#reason = event.reason
        this.#matchedStop = event.matchedStop
        this.#endItems(event.reason === 'length' || event.reason === 'content_filter', event.extraContent)
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
    const open = this.#open
    return open?.kind === kind && open.members === undefined ? open.index : this.#begin(kind)
  }

  #begin(kind: 'message' | 'reasoning', members?: NativeObject): number {
    this.#closeOpen()
    const index = this.#nextIndex++
    this.#open = { kind, index, members: undefined }
    if (kind === 'message') this.#hasMessage = true
    this.#out.onEvent({ type: 'item_started', index, item: kind, ...(members && { members }) })
    return index
  }

  /** White space in front of other items is dropped. */
  #closeAll(): void {
    this.#space = ''
    this.#closeOpen()
  }

  #closeOpen(): void {
    this.#closeItem(false)
    this.#releaseCall(false)
  }

  #closeItem(isCut: boolean): void {
    if (this.#open === null) return
    const { index, members } = this.#open
    this.#open = null
    this.#out.onEvent({ type: 'item_done', index, isCut, ...(members && { members }) })
  }

  /** Drops events of items that have ended. */
  #native(of: NativeSubject, event: NativeObject): void {
    if (of.kind === 'answer') {
      if (this.#open?.members !== undefined) this.#closeItem(false)
      this.#releaseCall(false)
      this.#out.onEvent({ type: 'native_answer_event', event })
      return
    }
    const index = this.#indexOf(of)
    if (index !== undefined) this.#out.onEvent({ type: 'native_event', index, event })
  }

  #indexOf(of: Exclude<NativeSubject, { kind: 'answer' }>): number | undefined {
    if (of.kind === 'open') return this.#open?.index
    return of.kind === 'call' ? this.#calls.get(of.number)?.index : this.#natives.get(of.number)
  }

  #beginCall(event: Extract<GenerationEvent, { type: 'tool_call' }>): void {
    const { index, id, name, extraContent } = event
    const members = withExtraContent(event.members, extraContent)
    this.#closeAll()
    let callId = id
    for (let count = 2; this.#callIds.has(callId); count += 1) callId = `${id}_${count}`
    this.#callIds.add(callId)
    const call: OpenCall = { index: this.#nextIndex++, callId, name, arguments: '', members, extraContent }
    this.#calls.set(index, call)
    this.#out.onEvent({
      type: 'function_started',
      index: call.index,
      callId,
      name,
      ...(members && { members }),
    })
  }

  #addArguments(index: number, delta: string): void {
    const call = this.#calls.get(index)
    if (call === undefined) return
    call.arguments += delta
    this.#out.onEvent({ type: 'function_arguments', index: call.index, delta })
  }

  #endCall(index: number, members?: NativeObject): void {
    const call = this.#calls.get(index)
    if (call === undefined) return
    this.#calls.delete(index)
    call.members = withExtraContent(members, call.extraContent)
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
    const { index, callId, name, members } = call
    this.#out.onEvent({
      type: 'function_done',
      index,
      callId,
      name,
      arguments: call.arguments,
      isCut,
      ...(members && { members }),
    })
  }

  /** @param extraContent about text and reasoning; a message without text holds it behind calls */
  #endItems(isCut: boolean, extraContent: NativeObject | undefined): void {
    // An answer that is only white space still has a message, as an empty one has.
    if (!this.#hasMessage && this.#nextIndex === 0) {
      const index = this.#item('message')
      if (this.#space !== '') this.#out.onEvent({ type: 'text', index, delta: this.#space, logprobs: null })
    }
    if (extraContent !== undefined && !isCut && this.#open === null) this.#begin('message')
    if (this.#open !== null) this.#open.members = withExtraContent(this.#open.members, extraContent)
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
