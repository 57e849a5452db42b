/**
 * Reads one generation: passes its events on under the turn's own numbers, and keeps what the next request needs. What
 * belongs to a call of the gateway's is told as such from its first event on.
 *
 * @hot one call per event of the worker
 */
import type {
  FinishReason,
  GenerationEvent,
  GenerationUsage,
  NativeAnswer,
  TokenLogprob,
  ToolLoopEvent,
} from '#kernel'
import type { CallRoute, ModelCall, ModelTurn } from './model-call.ts'

/** The turn, as its reader needs it. */
export interface TurnOutput {
  emit(event: ToolLoopEvent): void
  /** Index of the next output item. */
  nextIndex(): number
  /** Who answers a call of this name; counts it when it is ours. */
  routeOf(name: string): CallRoute
  /** An id that no other call of this turn has. */
  callId(wanted: string): string
}

export class TurnReader {
  reason: FinishReason = 'stop'
  matchedStop: string | number | null = null
  usage: GenerationUsage | null = null
  readonly #output: TurnOutput
  readonly #isFirst: boolean
  readonly #calls: (ModelCall | undefined)[] = []
  #openItem: 'message' | 'reasoning' | null = null
  #openIndex = 0
  /** Whole, but its end is not told yet: whether it was the last one cut off is known from the next event. */
  #held: ModelCall | null = null
  #text = ''
  #refusal = ''
  #reasoning = ''
  #signature: string | null = null
  #native: NativeAnswer | null = null

  constructor(output: TurnOutput, isFirst: boolean) {
    this.#output = output
    this.#isFirst = isFirst
  }

  /** @param event neither `finished` nor `failed`; of choice 0 */
  read(event: GenerationEvent): void {
    switch (event.type) {
      case 'started':
        if (this.#isFirst) this.#output.emit({ type: 'started', started: event })
        break
      case 'text':
        this.#text += event.delta
        this.#tellText('text', event.delta, event.logprobs ?? null)
        break
      case 'reasoning':
        this.#reasoning += event.delta
        this.#tellText('reasoning', event.delta, event.logprobs ?? null)
        break
      case 'reasoning_signature':
        this.#signature = event.signature
        this.#open('reasoning')
        this.#output.emit({ type: event.type, index: this.#openIndex, signature: event.signature })
        // What is thought from here on has a proof of its own.
        this.#closeItem(false)
        break
      case 'refusal':
        this.#refusal += event.delta
        this.#open('message')
        this.#output.emit({ type: event.type, index: this.#openIndex, delta: event.delta })
        break
      case 'annotation':
        this.#open('message')
        this.#output.emit({ type: event.type, index: this.#openIndex, annotation: event.annotation })
        break
      case 'native_item':
        this.#tellNative(event)
        break
      case 'tool_call':
        this.#beginCall(event.index, event.id, event.name)
        break
      case 'tool_arguments':
        this.#addArguments(this.#calls[event.index], event.delta)
        break
      case 'tool_call_done':
        this.#endCall(this.#calls[event.index])
        break
      case 'choice_done':
        this.reason = event.reason
        this.matchedStop = event.matchedStop
        this.#native = event.native ?? null
        this.#endChoice(event.reason === 'length' || event.reason === 'content_filter')
    }
  }

  get turn(): ModelTurn {
    return {
      text: this.#text,
      refusal: this.#refusal,
      reasoning: this.#reasoning,
      signature: this.#signature,
      calls: this.#calls.filter((call) => call !== undefined),
      native: this.#native,
    }
  }

  #tellText(type: 'text' | 'reasoning', delta: string, logprobs: readonly TokenLogprob[] | null): void {
    this.#open(type === 'text' ? 'message' : 'reasoning')
    this.#output.emit({ type, index: this.#openIndex, delta, logprobs })
  }

  #open(item: 'message' | 'reasoning'): void {
    this.#releaseHeld(false)
    if (this.#openItem === item) return
    this.#closeItem(false)
    this.#openItem = item
    this.#openIndex = this.#output.nextIndex()
    this.#output.emit({ type: 'item_started', index: this.#openIndex, item })
  }

  #tellNative({ engine, item }: Extract<GenerationEvent, { type: 'native_item' }>): void {
    this.#releaseHeld(false)
    this.#closeItem(false)
    this.#output.emit({ type: 'native_item', index: this.#output.nextIndex(), engine, item })
  }

  #closeItem(isCut: boolean): void {
    if (this.#openItem === null) return
    this.#openItem = null
    this.#output.emit({ type: 'item_done', index: this.#openIndex, isCut })
  }

  #beginCall(position: number, wantedId: string, name: string): void {
    this.#releaseHeld(false)
    this.#closeItem(false)
    const route = this.#output.routeOf(name)
    const id = this.#output.callId(wantedId)
    const call: ModelCall = { id, name, route, index: null, argumentText: '', isWhole: false }
    this.#calls[position] = call
    if (route.kind === 'function') {
      call.index = this.#output.nextIndex()
      this.#output.emit({ type: 'function_started', index: call.index, callId: id, name })
    } else if (route.kind === 'gateway' && !route.tool.isHidden) {
      call.index = this.#output.nextIndex()
      const tool = route.tool.called
      this.#output.emit({ type: 'call_started', index: call.index, callId: id, tool, approvalId: null })
    }
  }

  #addArguments(call: ModelCall | undefined, delta: string): void {
    if (call === undefined || call.isWhole) return
    call.argumentText += delta
    if (call.index === null) return
    const type = call.route.kind === 'function' ? 'function_arguments' : 'call_arguments'
    this.#output.emit({ type, index: call.index, delta })
  }

  #endCall(call: ModelCall | undefined): void {
    if (call === undefined || call.isWhole) return
    this.#releaseHeld(false)
    call.isWhole = true
    this.#held = call
  }

  #releaseHeld(isCut: boolean): void {
    const call = this.#held
    this.#held = null
    if (call !== null) this.#tellEnd(call, isCut)
  }

  #endChoice(isCut: boolean): void {
    this.#releaseHeld(isCut)
    this.#closeItem(isCut)
    for (const call of this.#calls) {
      if (call === undefined || call.isWhole) continue
      // An engine that ends without a word about its last call has written it whole, unless it was cut off.
      call.isWhole = !isCut
      this.#tellEnd(call, isCut)
    }
  }

  #tellEnd(call: ModelCall, isCut: boolean): void {
    if (call.argumentText === '' && !isCut) this.#fillArguments(call)
    const { route, id: callId, name, argumentText } = call
    if (route.kind === 'approval') {
      if (isCut) return
      const { called, server } = route.tool
      const own = called.kind === 'mcp' ? called.name : name
      call.index = this.#output.nextIndex()
      this.#output.emit({
        type: 'approval_requested',
        index: call.index,
        callId,
        label: server.plan.label,
        name: own,
        arguments: argumentText,
      })
    } else if (call.index === null) return
    else if (route.kind === 'function')
      this.#output.emit({
        type: 'function_done',
        index: call.index,
        callId,
        name,
        arguments: argumentText,
        isCut,
      })
    else if (!isCut)
      this.#output.emit({ type: 'call_arguments_done', index: call.index, arguments: argumentText })
  }

  /** No arguments at all are an empty object; the pieces that were told still make up the whole. */
  #fillArguments(call: ModelCall): void {
    const { isWhole } = call
    call.isWhole = false
    this.#addArguments(call, '{}')
    call.isWhole = isWhole
  }
}
